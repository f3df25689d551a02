// Whether the database takes writes that need room.
import { randomBytes } from 'node:crypto'
import type { Kysely } from 'kysely'
import type { Tables } from './tables.ts'

type Transaction = (work: (db: Kysely<Tables>) => Promise<unknown>) => Promise<unknown>

const ID = 'write-probe'
/** About what the largest report takes. At random, so that it cannot be compressed. */
const FILLER_BYTES = 768 * 1024

/** Writes a row and deletes it, in a table whose rows are short-lived anyway. What a crash leaves is overwritten next time. */
export async function probeWrites(transaction: Transaction): Promise<void> {
  const value = randomBytes(FILLER_BYTES).toString('base64')
  await transaction((db) =>
    db
      .insertInto('verifications')
      .values({ id: ID, identifier: ID, value, created_at: 0, updated_at: 0, expires_at: 0 })
      .onConflict((conflict) => conflict.column('id').doUpdateSet({ value }))
      .execute(),
  )
  await transaction((db) => db.deleteFrom('verifications').where('id', '=', ID).execute())
}
