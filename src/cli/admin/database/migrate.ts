import { readConfig } from '../../../server/config/server.ts'
import type { Io } from '../../io.ts'
import { openAndAct } from '../with-services.ts'

export async function migrate(io: Io): Promise<void> {
  const { database } = readConfig()
  await openAndAct(async () => {})
  const name = database.engine === 'sqlite' ? database.path : 'The PostgreSQL database'
  io.data({ engine: database.engine, migrated: true }, `${name} is up to date.`)
}
