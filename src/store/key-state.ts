// The state of a key in SQL, for api_keys and edges alike. credentials/key-state.ts defines what the states
// are.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { type KeyState, keyState } from '../credentials/key-state.ts'
import type { Tables } from './tables.ts'

const conditions: Record<KeyState, RawBuilder<SqlBool>> = {
  active: sql`revoked_at is null`,
  revoked: sql`revoked_at is not null`,
}

/** A condition for `where`. */
export const inState = (state: KeyState): RawBuilder<SqlBool> => conditions[state]

/** The columns that decide the state. */
export const stateColumns = ['revoked_at'] as const

export const stateOf = (row: Pick<Tables['api_keys'], (typeof stateColumns)[number]>): KeyState =>
  keyState({ revokedAt: row.revoked_at })
