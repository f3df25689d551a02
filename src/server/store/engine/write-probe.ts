// Tests whether the database accepts writes that need disk space.
import { randomBytes } from 'node:crypto'
import type { Kysely } from 'kysely'
import type { Tables } from './tables.ts'

type Transaction = (work: (db: Kysely<Tables>) => Promise<unknown>) => Promise<unknown>

const ID = 'write-probe'
/** About the size of the largest usage report. Random, so that it cannot be compressed. */
const FILLER_BYTES = 768 * 1024

/**
 * Inserts and deletes a row in a table of short-lived rows. A row left by a crash is overwritten by the next
 * probe.
 */
export async function probeWrites(transaction: Transaction): Promise<void> {
  const value = randomBytes(FILLER_BYTES).toString('base64')
  await transaction((db) =>
    db
      .insertInto('verifications')
      .values({ id: ID, value, expires_at: 0 })
      .onConflict((conflict) => conflict.column('id').doUpdateSet({ value }))
      .execute(),
  )
  await transaction((db) => db.deleteFrom('verifications').where('id', '=', ID).execute())
}
