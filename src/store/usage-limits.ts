// Limits on the usage that a report adds. Without them one faulty edge could fill a workspace's day to 63
// bits, so that the reports of all others are rejected, or slow down every report by inventing epochs.
import { executeBulk } from './bulk.ts'
import type { Tx } from './store.ts'
import type { Counter, Day, ParsedReport } from './usage-report.ts'

export type Totals = Pick<Counter, (typeof figures)[number]>

const figures = ['requests', 'bytesIn', 'bytesOut', 'events'] as const
const columns = {
  requests: 'requests',
  bytesIn: 'bytes_in',
  bytesOut: 'bytes_out',
  events: 'events',
} as const

const INT64_MAX = 2n ** 63n - 1n

/** The capacity of a column. */
export const NO_LIMIT: Totals = {
  requests: INT64_MAX,
  bytesIn: INT64_MAX,
  bytesOut: INT64_MAX,
  events: INT64_MAX,
}

/**
 * Epochs of one edge in one workspace's day: enough for a restart every 15 minutes. Every report sums over
 * them, so this limits its cost.
 */
const EPOCHS_MAX = 100

export interface RejectedCounter extends Day {
  reason: 'too_large' | 'too_many_epochs'
}

type Row<P extends string> = Record<`${P}_${(typeof figures)[number]}`, string> & Day
type EdgeRow = Row<'own' | 'edge'> & Record<'epochs' | 'own_epochs', string>

/**
 * Splits the counters into accepted and rejected. A counter is accepted if the edge has at most 100 epochs
 * that day, the edge's sum over them stays within `edgeMax`, and the day's sum over all edges within 63 bits.
 * The days must be locked. A counter of a known epoch that does not increase a sum is always accepted.
 */
export async function applyLimits(
  db: Tx,
  { edgeId, epoch }: ParsedReport,
  counters: readonly Counter[],
  edgeMax: Totals,
): Promise<{ accepted: Counter[]; rejected: RejectedCounter[] }> {
  const edgeSums = byDay(await readEdgeSums(db, edgeId, epoch, counters))
  const daySums = byDay(await readDaySums(db, counters))
  const reasonToReject = (counter: Counter): RejectedCounter['reason'] | undefined => {
    const edge = edgeSums.get(keyOf(counter))
    const day = daySums.get(keyOf(counter))
    if (edge?.own_epochs === '0' && Number(edge.epochs) >= EPOCHS_MAX) return 'too_many_epochs'
    const fits = figures.every((figure) => {
      const added = counter[figure] - BigInt(edge?.[`own_${figure}`] ?? 0)
      if (added <= 0n) return true
      const withinEdge = BigInt(edge?.[`edge_${figure}`] ?? 0) + added <= edgeMax[figure]
      return withinEdge && BigInt(day?.[`day_${figure}`] ?? 0) + added <= INT64_MAX
    })
    return fits ? undefined : 'too_large'
  }
  const accepted: Counter[] = []
  const rejected: RejectedCounter[] = []
  for (const counter of counters) {
    const reason = reasonToReject(counter)
    if (reason === undefined) accepted.push(counter)
    else rejected.push({ workspaceId: counter.workspaceId, day: counter.day, reason })
  }
  return { accepted, rejected }
}

const keyOf = ({ workspaceId, day }: Day) => `${day} ${workspaceId}`

const byDay = <T extends Day>(rows: readonly T[]) => new Map(rows.map((row) => [keyOf(row), row]))

/** Uses the first three columns of the primary key, so the cost depends on this edge's epochs only. */
const readEdgeSums = (db: Tx, edgeId: string, epoch: string, days: readonly Day[]) =>
  executeBulk<EdgeRow>(
    db,
    { workspace_id: 'text', day: 'bigint', edge_id: 'text', epoch: 'text' },
    days.map(({ workspaceId, day }) => [workspaceId, day, edgeId, epoch]),
    `select c.workspace_id as "workspaceId", c.day as day,
       ${asText('count(*)', 'epochs')},
       ${asText('sum(case when c.epoch = input.epoch then 1 else 0 end)', 'own_epochs')},
       ${figures
         .flatMap((figure) => {
           const column = `c.${columns[figure]}`
           return [
             asText(`max(case when c.epoch = input.epoch then ${column} else 0 end)`, `own_${figure}`),
             asText(`sum(${column})`, `edge_${figure}`),
           ]
         })
         .join(', ')}
     from input join usage_counters as c
       on c.workspace_id = input.workspace_id and c.day = input.day and c.edge_id = input.edge_id
     group by c.workspace_id, c.day`,
  )

const readDaySums = (db: Tx, days: readonly Day[]) =>
  executeBulk<Row<'day'>>(
    db,
    { workspace_id: 'text', day: 'bigint' },
    days.map(({ workspaceId, day }) => [workspaceId, day]),
    `select d.workspace_id as "workspaceId", d.day as day,
       ${figures.map((figure) => asText(`d.${columns[figure]}`, `day_${figure}`)).join(', ')}
     from input join usage_days as d on d.workspace_id = input.workspace_id and d.day = input.day`,
  )

/** Drivers round 64-bit numbers. */
const asText = (expression: string, name: string) => `cast(${expression} as text) as "${name}"`
