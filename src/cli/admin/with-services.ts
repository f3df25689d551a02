// Operators' commands act on the database itself and need no running server.
import { existsSync } from 'node:fs'
import { userInfo } from 'node:os'
import { readConfig } from '../../config.ts'
import type { Actor, Services } from '../../domain/context.ts'
import { createLog } from '../../log.ts'
import { openServices } from '../../services.ts'
import type { Io } from '../io.ts'

const PATIENCE_MS = 5_000

/** Opens the services, acts in it as the person at the terminal, and closes it whatever happens. */
export async function withServices<T>(
  io: Io,
  act: (services: Services, actor: Actor) => Promise<T>,
): Promise<T> {
  const config = readConfig()
  const { database } = config
  if (database.engine === 'sqlite' && !existsSync(database.path))
    io.info(`Making a new database: ${database.path}`)
  const services = await openServices(config, createLog('silent'), PATIENCE_MS)
  try {
    return await act(services, { kind: 'operator', id: operatorName() })
  } finally {
    await services.store.close()
  }
}

/** In a container the user may have a number and no name. */
function operatorName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.()}`
  }
}
