// SQL of the nodes that may use their cache, and the position of the change log that each has
// acknowledged (columns seen and mark).
import type { Selectable } from 'kysely'
import type { Position } from './change-log.ts'
import type { Db, Tx } from './store.ts'
import type { Tables } from './tables.ts'

type Columns = Selectable<Tables['nodes']>

export type NodeRow = Omit<Columns, 'seen' | 'mark'> & { position: Position }

export async function insertNode(db: Tx, { position, ...row }: NodeRow): Promise<void> {
  await db
    .insertInto('nodes')
    .values({ ...row, ...columnsOf(position) })
    .execute()
}

/** False if the node's row was deleted, because a revocation waited for it until its lease expired. */
export async function acknowledge(db: Tx, id: string, position: Position, at: number): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('nodes')
    .set({ ...columnsOf(position), heard_at: at })
    .where('id', '=', id)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

const columnsOf = ({ sequence, checksum }: Position) => ({ seen: sequence, mark: checksum })

export async function deleteNode(db: Tx, id: string): Promise<void> {
  await db.deleteFrom('nodes').where('id', '=', id).execute()
}

/**
 * The longest lease among the nodes that have not acknowledged a position; undefined if all have. A node has
 * acknowledged it only if it is at exactly that position, or at a later one that the log contains.
 */
export async function findLeaseBehind(db: Db, { sequence, checksum }: Position): Promise<number | undefined> {
  const { lease } = await db
    .selectFrom('nodes')
    .select((row) => row.fn.max('lease_ms').as('lease'))
    .where(({ and, eb, exists, not, or, selectFrom }) =>
      not(
        or([
          and([eb('seen', '=', sequence), eb('mark', '=', checksum)]),
          exists(
            selectFrom('key_feed')
              .select('key_feed.number')
              .where('key_feed.number', '>', sequence)
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
 * A node that acknowledges the position first keeps its row, because the condition is evaluated again. It
 * reads no other table: that one's snapshot could be older than the row.
 */
export async function deleteNodesBehind(db: Tx, { sequence, checksum }: Position): Promise<void> {
  await db
    .deleteFrom('nodes')
    .where(({ and, eb, or }) =>
      or([eb('seen', '<', sequence), and([eb('seen', '=', sequence), eb('mark', '!=', checksum)])]),
    )
    .execute()
}

export async function listNodes(db: Db): Promise<NodeRow[]> {
  const rows = await db.selectFrom('nodes').selectAll().orderBy('started_at').orderBy('id').execute()
  return rows.map(({ seen, mark, ...row }) => ({ ...row, position: { sequence: seen, checksum: mark } }))
}
