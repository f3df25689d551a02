// Operators' commands act on the database itself and need no running server.
import { existsSync } from 'node:fs'
import { userInfo } from 'node:os'
import { readConfig } from '../../config.ts'
import type { Actor, World } from '../../domain/context.ts'
import { createLog } from '../../log.ts'
import { openWorld } from '../../world.ts'
import type { Io } from '../io.ts'

const PATIENCE_MS = 5_000

/** Opens the world, acts in it as the person at the terminal, and closes it whatever happens. */
export async function withWorld<T>(io: Io, act: (world: World, actor: Actor) => Promise<T>): Promise<T> {
  const config = readConfig()
  const { database } = config
  if (database.engine === 'sqlite' && !existsSync(database.path))
    io.say(`Making a new database: ${database.path}`)
  const world = await openWorld(config, createLog('silent'), PATIENCE_MS)
  try {
    return await act(world, { kind: 'operator', id: operatorName() })
  } finally {
    await world.store.close()
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
