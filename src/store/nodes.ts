// The nodes that may answer from memory, and up to which change of the feed each has heard.
import type { Selectable } from 'kysely'
import type { Db } from './store.ts'
import type { Tables } from './tables.ts'

export type NodeRow = Selectable<Tables['nodes']>

export async function insertNode(db: Db, row: NodeRow): Promise<void> {
  await db.insertInto('nodes').values(row).execute()
}

/** False where the node is no longer among them: somebody waited for it in vain. */
export async function acknowledge(db: Db, id: string, seen: number, at: number): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('nodes')
    .set({ seen, heard_at: at })
    .where('id', '=', id)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

export async function deleteNode(db: Db, id: string): Promise<void> {
  await db.deleteFrom('nodes').where('id', '=', id).execute()
}

/** The longest lease among the nodes that have not heard of a change; undefined where all have. */
export async function findLeaseBehind(db: Db, number: number): Promise<number | undefined> {
  const { lease } = await db
    .selectFrom('nodes')
    .select((row) => row.fn.max('lease_ms').as('lease'))
    .where('seen', '<', number)
    .executeTakeFirstOrThrow()
  return lease ?? undefined
}

/** One that hears of the change first keeps its row, because then the condition no longer holds. */
export async function deleteNodesBehind(db: Db, number: number): Promise<void> {
  await db.deleteFrom('nodes').where('seen', '<', number).execute()
}

export const listNodes = (db: Db): Promise<NodeRow[]> =>
  db.selectFrom('nodes').selectAll().orderBy('started_at').orderBy('id').execute()
