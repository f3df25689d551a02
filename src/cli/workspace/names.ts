// `adit names list`: the tunnel names of a workspace, through the API.
import { type ApiInput, withApi } from '../api.ts'
import type { Io } from '../io.ts'
import { dim, green } from '../style.ts'
import { describeAccess } from '../tunnels/describe-access.ts'
import { readPages } from './pages.ts'

export async function list(input: ApiInput, io: Io): Promise<void> {
  await withApi(input, ({ names }) =>
    io.list(
      readPages(
        (page) => names.list(page),
        (page) => page.names,
      ),
      {
        columns: {
          NAME: ({ name }) => name,
          HOST: ({ host }) => host,
          RESERVED: ({ reserved }) => (reserved ? green('yes') : dim('no')),
          OPEN: ({ open }) => String(open),
          ACCESS: ({ access: { user, allowIp } }) => describeAccess({ hasPassword: user !== null, allowIp }),
          'LAST OPENED': ({ lastUsedAt }) => io.time(lastUsedAt),
        },
        empty: 'No tunnel names.',
        shrink: ['ACCESS', 'LAST OPENED', 'HOST'],
      },
    ),
  )
}
