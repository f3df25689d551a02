// `adit edges list`: the edges that may carry tunnels of a workspace, through the API.
import { type ApiInput, withApi } from '../api.ts'
import type { Io } from '../io.ts'
import { green, yellow } from '../style.ts'
import { readPages } from './pages.ts'

export async function list(input: ApiInput, io: Io): Promise<void> {
  await withApi(input, ({ edges }) =>
    io.list(
      readPages(
        (page) => edges.list(page),
        (page) => page.edges,
      ),
      {
        columns: {
          NAME: ({ name }) => name,
          URL: ({ url }) => url ?? '-',
          STATE: ({ isConnected }) => (isConnected ? green('connected') : yellow('not connected')),
          VERSION: ({ version }) => version ?? '-',
          'LAST REPORT': ({ lastSyncAt }) => io.time(lastSyncAt),
          TUNNELS: ({ tunnels }) => String(tunnels),
        },
        empty: 'No edges.',
        shrink: ['VERSION', 'LAST REPORT', 'NAME'],
      },
    ),
  )
}
