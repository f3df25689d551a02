// The feed of changes: numbered in the order of their commits, kept for a while.
import { type Selectable, sql } from 'kysely'
import type { Db } from './store.ts'
import type { Tables } from './tables.ts'

export type FeedRow = Selectable<Tables['key_feed']>

/** To be called last in its transaction: the row that numbers are taken from is everybody's. */
export async function appendToFeed(db: Db, change: Omit<FeedRow, 'number'>): Promise<number> {
  const { number } = await db
    .updateTable('key_feed_head')
    .set((row) => ({ number: row('number', '+', 1) }))
    .where('id', '=', 1)
    .returning('number')
    .executeTakeFirstOrThrow()
  await db
    .insertInto('key_feed')
    .values({ ...change, number })
    .execute()
  return number
}

export async function dropFeedBefore(db: Db, before: number): Promise<void> {
  await db.deleteFrom('key_feed').where('at', '<', before).execute()
}

export const readFeed = (db: Db, after: number, upTo: number): Promise<FeedRow[]> =>
  db
    .selectFrom('key_feed')
    .selectAll()
    .where('number', '>', after)
    .where('number', '<=', upTo)
    .orderBy('number')
    .execute()

/** The changes made since a moment, up to a number. */
export const readFeedSince = (db: Db, at: number, upTo: number): Promise<FeedRow[]> =>
  db
    .selectFrom('key_feed')
    .selectAll()
    .where('at', '>=', at)
    .where('number', '<=', upTo)
    .orderBy('number')
    .execute()

/** The number of the last change ever made. */
export async function readFeedHead(db: Db): Promise<number> {
  const { number } = await db
    .selectFrom('key_feed_head')
    .select('number')
    .where('id', '=', 1)
    .executeTakeFirstOrThrow()
  return number
}

/** The number of the last change, and up to which one the node is known to have heard, both as of one moment. */
export async function lookAtFeed(db: Db, nodeId: string): Promise<{ head: number; seen: number | null }> {
  const { rows } = await sql<{ head: number; seen: number | null }>`
    select number as head, (select seen from nodes where id = ${nodeId}) as seen
    from key_feed_head where id = 1`.execute(db)
  const [look] = rows
  if (!look) throw new Error('The feed has no head.')
  return look
}

/** The number before the oldest change that is still kept: whoever has seen less has missed something. */
export async function readFeedFloor(db: Db): Promise<number> {
  const oldest = await db
    .selectFrom('key_feed')
    .select('number')
    .orderBy('number')
    .limit(1)
    .executeTakeFirst()
  return oldest ? oldest.number - 1 : readFeedHead(db)
}
