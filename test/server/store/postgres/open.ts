import assert from 'node:assert/strict'
import { createLog } from '../../../../src/lib/log.ts'
import { StartupError } from '../../../../src/lib/startup-error.ts'
import { readConfig } from '../../../../src/server/config/server.ts'
import type { Services } from '../../../../src/server/domain/context.ts'
import { openServices } from '../../../../src/server/services.ts'
import { SECRET } from '../../../support/databases/migrated-databases.ts'

/** Longer than a test may take: an error that the operator must correct is not retried. */
const RETRY_MS = 600_000

/** Connects and migrates. */
export const open = (url: string): Promise<Services> =>
  openServices(readConfig({ ADIT_DATABASE_URL: url, ADIT_SECRET: SECRET }), createLog('silent'), RETRY_MS)

/** Returns the message. */
export async function failOpen(url: string): Promise<string> {
  const error = await open(url).then(
    ({ store }) => store.close(),
    (error) => error,
  )
  assert.ok(error instanceof StartupError, `${url}: ${error ?? 'was opened'}`)
  return error.message
}
