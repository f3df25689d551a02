// SQL of the change log: entries in commit order, kept for a limited time.
import { sql } from 'kysely'
import { isPostgres } from '../engine/bulk.ts'
import { nowIn } from '../engine/clock.ts'
import { type Placeholders, statement } from '../engine/statement.ts'
import type { Db, Tx } from '../engine/store.ts'
import type { ChangeKind } from '../engine/tables.ts'

/**
 * Identifies an entry of the change log. Sequences alone do not: after a restore or a failover that lost
 * entries they are assigned a second time, with another checksum.
 */
export interface Position {
  readonly sequence: number
  readonly checksum: string
}

export interface Change extends Position {
  readonly kind: ChangeKind
  readonly subjectId: string
  /** Hash of the secret that was revoked or has a new expiry; empty for other changes. */
  readonly hash: string
  /** The new expiry of a key, if that has changed. */
  readonly expiresAt: number | null
}

/** A change with the checksum of the previous one. */
export interface LinkedChange extends Change {
  readonly previousChecksum: string
}

/** The position as the id of an event. */
export const formatPosition = ({ sequence, checksum }: Position): string => `${sequence}-${checksum}`

export function parsePosition(id: string): Position {
  const [sequence, checksum = ''] = id.split('-')
  return { sequence: Number(sequence), checksum }
}

export const isSamePosition = (a: Position, b: Position): boolean =>
  a.sequence === b.sequence && a.checksum === b.checksum

export const follows = ({ sequence, previousChecksum }: LinkedChange, position: Position): boolean =>
  sequence === position.sequence + 1 && previousChecksum === position.checksum

/** A node that is further behind drops its cache, which costs less than reading the changes. */
const CATCH_UP_MAX = 10_000
const COUNTED_MAX = 100_000

const changeColumns = [
  'sequence',
  'checksum',
  'kind',
  'subject_id as subjectId',
  'hash',
  'expires_at as expiresAt',
] as const

type NewChange = Omit<Change, 'sequence'> & { at: number }

type Appended = Pick<LinkedChange, 'sequence' | 'previousChecksum'>

/** Call it last in the transaction, because every change locks the same row until its commit. */
export async function appendChange(db: Tx, entry: NewChange): Promise<LinkedChange> {
  // SQLite does not support `appendEntry`.
  const appended = isPostgres(db) ? (await appendEntry(db, entry))[0] : await appendChanges(db, [entry])
  const { sequence, previousChecksum } = appended as Appended
  const { at: _, ...change } = entry
  return { ...change, sequence, previousChecksum }
}

/** One statement, so that the row is locked only for one round trip and the commit. */
const appendEntry = statement(
  (_: Tx, { kind, subjectId, hash, expiresAt, at, checksum }: Placeholders<NewChange>) => sql<Appended>`
    with head as (
      update change_log_head set sequence = previous.sequence + 1, checksum = ${checksum}
      from (select sequence, checksum from change_log_head where id = 1 for update) as previous
      where id = 1
      returning change_log_head.sequence, previous.checksum as previous_checksum
    )
    insert into change_log (sequence, checksum, previous_checksum, kind, subject_id, hash, expires_at, at)
    select sequence, ${checksum}, previous_checksum, ${kind}, ${subjectId}, ${hash},
      cast(${expiresAt} as bigint), cast(${at} as bigint) from head
    returning sequence, previous_checksum as "previousChecksum"`,
)

/** SQLite limits the parameters of a statement. */
const ROWS_PER_STATEMENT = 500

/** Appends at least one change, and returns the last. Call it last in the transaction. */
export async function appendChanges(db: Tx, changes: readonly NewChange[]): Promise<LinkedChange> {
  // On SQLite a transaction is the only writer.
  if (isPostgres(db)) await lockHead(db)
  let { sequence, checksum: previousChecksum } = await readHead(db)
  const entries = changes.map((change) => {
    sequence += 1
    const entry = { ...change, sequence, previousChecksum }
    previousChecksum = change.checksum
    return entry
  })
  const last = entries.at(-1) as (typeof entries)[number]
  const head = { sequence: last.sequence, checksum: last.checksum }
  await db.updateTable('change_log_head').set(head).where('id', '=', 1).execute()
  for (let start = 0; start < entries.length; start += ROWS_PER_STATEMENT)
    await db
      .insertInto('change_log')
      .values(entries.slice(start, start + ROWS_PER_STATEMENT).map(toRow))
      .execute()
  return last
}

const toRow = ({ previousChecksum, subjectId, expiresAt, ...entry }: LinkedChange & { at: number }) => ({
  ...entry,
  previous_checksum: previousChecksum,
  subject_id: subjectId,
  expires_at: expiresAt,
})

/** Blocks all other changes. An update without change locks the row on both engines. */
export async function lockHead(db: Tx): Promise<void> {
  await db
    .updateTable('change_log_head')
    .set((row) => ({ sequence: row.ref('sequence') }))
    .where('id', '=', 1)
    .execute()
}

/**
 * Deletes from the start of the log only, so that clock differences between nodes cannot leave a gap. Looks
 * at the `size` oldest entries. Returns how many it deleted.
 */
export async function deleteChangesBefore(db: Tx, before: number, size: number): Promise<number> {
  const oldest = await readOldest(db, size)
  const last = oldest.findLast(({ at }) => at < before)
  if (!last) return 0
  const { numDeletedRows } = await db
    .deleteFrom('change_log')
    .where('sequence', '<=', last.sequence)
    .executeTakeFirst()
  return Number(numDeletedRows)
}

const readOldest = (db: Db, size: number) =>
  db.selectFrom('change_log').select(['sequence', 'at']).orderBy('sequence').limit(size).execute()

/** How many entries would be deleted, up to a limit, and the time of the oldest. */
export async function countChangesBefore(db: Db, before: number) {
  const oldest = await readOldest(db, COUNTED_MAX)
  const rows = oldest.findLastIndex(({ at }) => at < before) + 1
  return { rows, oldest: rows === 0 ? null : (oldest[0]?.at ?? null) }
}

/** The changes after one position up to another; undefined if some are missing or there are too many. */
export async function readChanges(db: Db, after: Position, upTo: Position): Promise<Change[] | undefined> {
  if (after.sequence > upTo.sequence || upTo.sequence - after.sequence > CATCH_UP_MAX) return undefined
  const changes = await db
    .selectFrom('change_log')
    .select([...changeColumns, 'previous_checksum as previousChecksum'])
    .where('sequence', '>', after.sequence)
    .where('sequence', '<=', upTo.sequence)
    .orderBy('sequence')
    .execute()
  let position = after
  for (const change of changes) {
    if (!follows(change, position)) return undefined
    position = change
  }
  return isSamePosition(position, upTo) ? changes : undefined
}

/** The last `count` changes of keys up to a position, oldest first. Other changes cannot displace them. */
export async function readLatest(db: Db, upTo: Position, count: number): Promise<Change[]> {
  const latest = await db
    .selectFrom('change_log')
    .select(changeColumns)
    .where('sequence', '<=', upTo.sequence)
    .where('kind', 'in', ['key', 'key-expiry', 'workspace-archived', 'workspace-restored'])
    .orderBy('sequence', 'desc')
    .limit(count)
    .execute()
  return latest.reverse()
}

/** The position of the latest change. */
export const readHead = (db: Db): Promise<Position> =>
  db
    .selectFrom('change_log_head')
    .select(['sequence', 'checksum'])
    .where('id', '=', 1)
    .executeTakeFirstOrThrow()

/**
 * The head, the position that a node has acknowledged (undefined if it has no row) and the time, from one
 * snapshot. Entries are read separately: nodes poll several times a second and rarely find any, and joining
 * them here would double the cost.
 */
export async function readPosition(
  db: Db,
  nodeId: string,
): Promise<{ head: Position; acknowledged: Position | undefined; now: number }> {
  const [row] = await selectPosition(db, { nodeId })
  if (!row) throw new Error('the change log has no head')
  const { sequence, checksum, acknowledgedSequence, acknowledgedChecksum, now } = row
  return {
    head: { sequence, checksum },
    acknowledged:
      acknowledgedSequence === null || acknowledgedChecksum === null
        ? undefined
        : { sequence: acknowledgedSequence, checksum: acknowledgedChecksum },
    now,
  }
}

const selectPosition = statement((db: Db, { nodeId }: Placeholders<{ nodeId: string }>) =>
  db
    .selectFrom('change_log_head as head')
    .leftJoin('nodes', (join) => join.on('nodes.id', '=', nodeId))
    .select([
      'head.sequence',
      'head.checksum',
      'nodes.acknowledged_sequence as acknowledgedSequence',
      'nodes.acknowledged_checksum as acknowledgedChecksum',
    ])
    .select(nowIn(db).as('now'))
    .where('head.id', '=', 1),
)
