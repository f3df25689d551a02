// The nodes that may answer from memory, and up to which change of the feed each has heard.
import type { Selectable } from 'kysely'
import type { Position } from './change-log.ts'
import type { Db, Tx } from './store.ts'
import type { Tables } from './tables.ts'

export type NodeRow = Selectable<Tables['nodes']>

export async function insertNode(db: Tx, row: NodeRow): Promise<void> {
  await db.insertInto('nodes').values(row).execute()
}

/** False where the node is no longer among them: somebody waited for it in vain. */
export async function acknowledge(
  db: Tx,
  id: string,
  { number, mark }: Position,
  at: number,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('nodes')
    .set({ seen: number, mark, heard_at: at })
    .where('id', '=', id)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

export async function deleteNode(db: Tx, id: string): Promise<void> {
  await db.deleteFrom('nodes').where('id', '=', id).execute()
}

/**
 * The longest lease among the nodes that have not heard of a change; undefined where all have. One counts as having heard
 * only if it is exactly there, or further on in this very feed.
 */
export async function findLeaseBehind(db: Db, { number, mark }: Position): Promise<number | undefined> {
  const { lease } = await db
    .selectFrom('nodes')
    .select((row) => row.fn.max('lease_ms').as('lease'))
    .where(({ and, eb, exists, not, or, selectFrom }) =>
      not(
        or([
          and([eb('seen', '=', number), eb('mark', '=', mark)]),
          exists(
            selectFrom('key_feed')
              .select('key_feed.number')
              .where('key_feed.number', '>', number)
              .whereRef('key_feed.number', '=', 'nodes.seen')
              .whereRef('key_feed.mark', '=', 'nodes.mark'),
          ),
        ]),
      ),
    )
    .executeTakeFirstOrThrow()
  return lease ?? undefined
}

/**
 * One that hears of the change first keeps its row, because then the condition no longer holds. It looks at nothing but the
 * row itself: in another table it might not see yet what the row already speaks of.
 */
export async function deleteNodesBehind(db: Tx, { number, mark }: Position): Promise<void> {
  await db
    .deleteFrom('nodes')
    .where(({ and, eb, or }) =>
      or([eb('seen', '<', number), and([eb('seen', '=', number), eb('mark', '!=', mark)])]),
    )
    .execute()
}

export const listNodes = (db: Db): Promise<NodeRow[]> =>
  db.selectFrom('nodes').selectAll().orderBy('started_at').orderBy('id').execute()
