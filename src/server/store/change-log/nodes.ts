// SQL of nodes: those that may use their cache, with the change log position that each has acknowledged.
import type { Selectable } from 'kysely'
import { type Placeholders, statement, unflushedUpdate } from '../engine/statement.ts'
import type { DatabaseConnection, Db, Tx } from '../engine/store.ts'
import type { Tables } from '../engine/tables.ts'
import type { Position } from './entries.ts'

type Columns = Selectable<Tables['nodes']>

type NodeRow = Omit<Columns, 'acknowledged_sequence' | 'acknowledged_checksum'> & { position: Position }

export async function insertNode(db: Tx, { position, ...row }: NodeRow): Promise<void> {
  const { sequence, checksum } = position
  await db
    .insertInto('nodes')
    .values({ ...row, acknowledged_sequence: sequence, acknowledged_checksum: checksum })
    .execute()
}

/**
 * Returns the head of the change log from the same snapshot. Undefined if the node's row is gone: a
 * revocation that waited until the lease expired has deleted it. A crash of the database may undo the
 * acknowledgment; then a revocation waits longer than it needs to.
 */
export const acknowledge = (
  connection: DatabaseConnection,
  id: string,
  position: Position,
  at: number,
): Promise<Position | undefined> => connection.updateUnflushed(acknowledgment, { id, at, ...position })

interface Acknowledgment extends Position {
  id: string
  at: number
}

const acknowledgment = unflushedUpdate((db, { id, sequence, checksum, at }: Placeholders<Acknowledgment>) =>
  db
    .updateTable('nodes')
    .set({ acknowledged_sequence: sequence, acknowledged_checksum: checksum, heartbeat_at: at })
    .where('id', '=', id)
    .returning(({ selectFrom }) => {
      const head = selectFrom('change_log_head as head').where('head.id', '=', 1)
      return [
        head.select('head.sequence').$asScalar().$notNull().as('sequence'),
        head.select('head.checksum').$asScalar().$notNull().as('checksum'),
      ]
    }),
)

export async function deleteNode(db: Tx, id: string): Promise<void> {
  await db.deleteFrom('nodes').where('id', '=', id).execute()
}

/** The nodes that have acknowledged the same position. */
export interface AcknowledgedPosition extends Position {
  /** False after a restore or a failover that lost the entry, until these nodes have read the log again. */
  isInLog: boolean
  /** The longest lease among these nodes. */
  leaseMs: number
  /** The number of nodes. */
  count: number
}

/** Returns a row per position, not per node: usually all nodes are at one of the last few. */
export async function readAcknowledged(db: Db): Promise<AcknowledgedPosition[]> {
  const rows = await selectAcknowledged(db, {})
  return rows.map(({ entry, ...row }) => ({ ...row, isInLog: entry !== null }))
}

const selectAcknowledged = statement((db: Db) => {
  // Grouped first, so that an entry is looked up for each position and not for each node.
  const positions = db
    .selectFrom('nodes')
    .select((row) => [
      'acknowledged_sequence as sequence',
      'acknowledged_checksum as checksum',
      row.fn.max('lease_ms').as('leaseMs'),
      row.cast<number>(row.fn.countAll(), 'integer').as('count'),
    ])
    .groupBy(['acknowledged_sequence', 'acknowledged_checksum'])
  return db
    .selectFrom(positions.as('position'))
    .leftJoin('change_log as entry', (join) =>
      join
        .onRef('entry.sequence', '=', 'position.sequence')
        .onRef('entry.checksum', '=', 'position.checksum'),
    )
    .selectAll('position')
    .select('entry.sequence as entry')
})

/**
 * A node that acknowledges the position first keeps its row, because PostgreSQL evaluates the condition
 * again. The condition must not read another table, whose snapshot could be older than the row. A row at a
 * higher sequence that is not in the log is kept: its node may have a valid lease after a forged
 * announcement.
 */
export async function deleteNodesBehind(db: Tx, { sequence, checksum }: Position): Promise<void> {
  await db
    .deleteFrom('nodes')
    .where(({ and, eb, or }) =>
      or([
        eb('acknowledged_sequence', '<', sequence),
        and([eb('acknowledged_sequence', '=', sequence), eb('acknowledged_checksum', '!=', checksum)]),
      ]),
    )
    .execute()
}

export async function listNodes(db: Db): Promise<NodeRow[]> {
  const rows = await db.selectFrom('nodes').selectAll().orderBy('started_at').orderBy('id').execute()
  return rows.map(({ acknowledged_sequence: sequence, acknowledged_checksum: checksum, ...row }) => ({
    ...row,
    position: { sequence, checksum },
  }))
}
