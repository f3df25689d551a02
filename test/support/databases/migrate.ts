import { createLog } from '../../../src/lib/log.ts'
import { readConfig } from '../../../src/server/config/server.ts'
import { openServices } from '../../../src/server/services.ts'
import { SECRET } from './migrated-databases.ts'

const TIMEOUT_MS = 30_000

/** Brings a database to the schema of this version. */
export async function migrate(database: string): Promise<void> {
  const config = readConfig({ ADIT_DATABASE_URL: database, ADIT_SECRET: SECRET })
  const { store } = await openServices(config, createLog('silent'), TIMEOUT_MS)
  await store.close()
}
