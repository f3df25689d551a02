// Configuration → store → the world in which the domain's verbs act. Apart from app.ts, so that an operator's command
// does not load a web server.
import { randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import type { Config } from './config.ts'
import type { World } from './domain/context.ts'
import { createIds } from './domain/ids.ts'
import { migrate } from './store/migrate.ts'
import { openStore } from './store/store.ts'

/** Opens the database and brings its schema up to date; waits that long for a database that cannot answer yet. */
export async function openWorld(config: Config, log: Logger, patienceMs: number): Promise<World> {
  const store = openStore(config.database, (error) => log.warn({ err: error }, 'database connection lost'))
  try {
    await migrate(store, {
      patienceMs,
      onWait: (error) => log.warn({ err: error }, 'waiting for the database'),
    })
  } catch (error) {
    await store.close()
    throw error
  }
  const clock = Date.now
  const random = (bytes: number) => randomBytes(bytes)
  return { store, clock, random, ids: createIds(clock, random), tunnelDomain: config.tunnelDomain }
}
