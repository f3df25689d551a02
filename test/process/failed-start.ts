// Starts that fail.
import assert from 'node:assert/strict'
import { createLog } from '../../src/lib/log.ts'
import { StartupError } from '../../src/lib/startup-error.ts'
import { readConfig } from '../../src/server/config/server.ts'
import { openServices } from '../../src/server/services.ts'
import { SECRET } from '../support/databases/migrated-databases.ts'

/** The message of the failed start with this SQLite file. */
export async function failStart(path: string): Promise<string> {
  const config = readConfig({ ADIT_DATABASE_URL: `sqlite:${path}`, ADIT_SECRET: SECRET })
  const opened = openServices(config, createLog('silent'), 60_000)
  const error = await opened.then(
    async ({ store }) => {
      await store.close()
      return undefined
    },
    (error) => error,
  )
  assert.ok(error instanceof StartupError, `${path}: ${error ?? 'was opened'}`)
  assert.match(error.message, /ADIT_DATABASE_URL|backup/, 'the message names the remedy')
  assert.ok(error.message.includes(path), error.message)
  return error.message
}
