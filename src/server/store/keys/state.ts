// The state of a key in SQL; lib/credentials/key-state.ts defines the states. The clock of the database
// decides, so that all nodes agree.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { type KeyState, keyState } from '../../../lib/credentials/key-state.ts'
import { statementTimeIn } from '../engine/clock.ts'
import type { Db } from '../engine/store.ts'
import type { Tables } from '../engine/tables.ts'

const conditions: Record<KeyState, (db: Db) => RawBuilder<SqlBool>> = {
  active: (db) => sql`revoked_at is null and (expires_at is null or expires_at > ${statementTimeIn(db)})`,
  revoked: () => sql`revoked_at is not null`,
  expired: (db) => sql`revoked_at is null and expires_at <= ${statementTimeIn(db)}`,
}

/** A condition on api_keys for `where`, at the time that the statement starts. */
export const inState = (db: Db, state: KeyState): RawBuilder<SqlBool> => conditions[state](db)

/** A condition on edges for `where`. */
export const isActiveEdge: RawBuilder<SqlBool> = sql`revoked_at is null`

/** The columns that decide the state of a key, with `nowIn` as `now`. */
export const stateColumns = ['revoked_at', 'expires_at'] as const

export type StateColumns = Pick<Tables['api_keys'], (typeof stateColumns)[number]> & { now: number }

export const rowState = ({ revoked_at, expires_at, now }: StateColumns): KeyState =>
  keyState({ revokedAt: revoked_at, expiresAt: expires_at, now })
