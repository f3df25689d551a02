import { listAllPorts, releasePort } from '../../server/domain/tunnels/operator-ports.ts'
import { UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { withServices } from './with-services.ts'

export async function list(io: Io): Promise<void> {
  await withServices((services) =>
    io.list(listAllPorts(services), {
      columns: {
        PORT: ({ port }) => String(port),
        WORKSPACE: ({ workspace }) => workspace,
        NAME: ({ name }) => name,
        STATE: ({ state }) => state,
        EXPIRES: ({ expiresAt }) => io.time(expiresAt),
      },
      empty: 'No port is assigned. A TCP tunnel gets one when it is opened the first time.',
      shrink: ['NAME', 'WORKSPACE'],
    }),
  )
}

export async function release(text: string, io: Io): Promise<void> {
  if (!/^\d{1,5}$/.test(text)) throw new UsageError(`Invalid port "${text}" (expected 1–65535)`)
  const released = await withServices((services, actor) => releasePort(services, actor, Number(text)))
  io.data(released, `Released port ${released.port} of "${released.name}" (${released.workspace}).`)
}
