// The feed of changes: numbered in the order of their commits, kept for a while.
import type { Selectable } from 'kysely'
import type { Db, Tx } from './store.ts'
import type { Tables } from './tables.ts'

export type FeedRow = Selectable<Tables['key_feed']>

/** The mark tells apart what counts alike: in a database that was put back, numbers are given a second time. */
export interface Position {
  number: number
  mark: string
}

export const isSamePosition = (a: Position, b: Position): boolean =>
  a.number === b.number && a.mark === b.mark

/** Whoever has missed more starts afresh, which is less work. */
const CATCH_UP_MAX = 10_000
/** More than one, so that the feed grows shorter when changes become fewer. */
const DROPPED_AT_ONCE = 10

export type NewChange = Pick<FeedRow, 'kind' | 'subject_id' | 'hash' | 'at' | 'mark'>

/** To be called last in its transaction: the row that numbers are taken from is everybody's. */
export async function appendChange(db: Tx, change: NewChange): Promise<Position> {
  const head = await db
    .updateTable('key_feed_head')
    .set((row) => ({ number: row('number', '+', 1) }))
    .where('id', '=', 1)
    .returning(['number', 'mark'])
    .executeTakeFirstOrThrow()
  const { number } = head
  const { mark } = change
  await db
    .insertInto('key_feed')
    .values({ ...change, number, before: head.mark })
    .execute()
  await db.updateTable('key_feed_head').set({ mark }).where('id', '=', 1).execute()
  return { number, mark }
}

/** Always the first ones, some at a time: no clock of any node can tear a hole into the feed. */
export async function deleteChangesBefore(db: Tx, before: number): Promise<void> {
  const oldest = await db
    .selectFrom('key_feed')
    .select(['number', 'at'])
    .orderBy('number')
    .limit(DROPPED_AT_ONCE)
    .execute()
  const last = oldest.findLast(({ at }) => at < before)
  if (last) await db.deleteFrom('key_feed').where('number', '<=', last.number).execute()
}

/** The changes after a place, up to another; undefined where they are not all there, or too many. */
export async function readChanges(db: Db, after: Position, upTo: Position): Promise<FeedRow[] | undefined> {
  if (after.number > upTo.number || upTo.number - after.number > CATCH_UP_MAX) return undefined
  const changes = await db
    .selectFrom('key_feed')
    .selectAll()
    .where('number', '>', after.number)
    .where('number', '<=', upTo.number)
    .orderBy('number')
    .execute()
  let place = after
  for (const change of changes) {
    if (change.number !== place.number + 1 || change.before !== place.mark) return undefined
    place = change
  }
  return isSamePosition(place, upTo) ? changes : undefined
}

/** So many changes up to a place, the latest last. */
export async function readLatest(db: Db, upTo: Position, count: number): Promise<FeedRow[]> {
  const latest = await db
    .selectFrom('key_feed')
    .selectAll()
    .where('number', '<=', upTo.number)
    .orderBy('number', 'desc')
    .limit(count)
    .execute()
  return latest.reverse()
}

/** Where the last change ever made is. */
export const readHead = (db: Db): Promise<Position> =>
  db.selectFrom('key_feed_head').select(['number', 'mark']).where('id', '=', 1).executeTakeFirstOrThrow()

/** The same, and up to where a node is known to have heard, both as of one moment. */
export async function readPosition(
  db: Db,
  nodeId: string,
): Promise<{ head: Position; seen: Position | undefined }> {
  const { number, mark, seen, seenMark } = await db
    .selectFrom('key_feed_head as head')
    .leftJoin('nodes', (join) => join.on('nodes.id', '=', nodeId))
    .select(['head.number', 'head.mark', 'nodes.seen', 'nodes.mark as seenMark'])
    .where('head.id', '=', 1)
    .executeTakeFirstOrThrow()
  return {
    head: { number, mark },
    seen: seen === null || seenMark === null ? undefined : { number: seen, mark: seenMark },
  }
}
