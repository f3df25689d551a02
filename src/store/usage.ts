// Usage, merged idempotently. Edges send running totals, and a counter is the maximum of the stored and the
// reported value: repeated, late or reordered reports change nothing, and the next report makes up for a lost
// one. The roll-up of a day is written from the counters in the same transaction, so reads are cheap.

import { DAY_MS } from '../time.ts'
import { batches, executeBulk } from './bulk.ts'
import { asText, type Db, type Store, type Tx } from './store.ts'
import { applyLimits, NO_LIMIT, type RejectedCounter, type Totals } from './usage-limits.ts'
import {
  type Counter,
  type Day,
  normalizeReport,
  type ParsedReport,
  type TunnelMinute,
} from './usage-report.ts'

export interface DayUsage {
  day: number
  requests: bigint
  bytesIn: bigint
  bytesOut: bigint
  events: bigint
  peakTunnels: number
}

/** Commits the counters within the limits; returns the days of rejected counters, with the reason. */
export async function mergeReport(
  store: Store,
  report: ParsedReport,
  edgeMax: Totals = NO_LIMIT,
): Promise<RejectedCounter[]> {
  const { counters, tunnels, days } = normalizeReport(report)
  if (days.length === 0) return []
  return store.transaction(async (db) => {
    const rejected: RejectedCounter[] = []
    // On SQLite there is only one writer.
    if (store.engine === 'postgres') await lockDays(db, days)
    for (const part of batches(db, counters)) {
      const { accepted, ...limited } = await applyLimits(db, report, part, edgeMax)
      rejected.push(...limited.rejected)
      if (accepted.length === 0) continue
      await mergeCounters(db, report, accepted)
      await rollUpCounters(db, accepted)
    }
    for (const part of batches(db, tunnels)) {
      await mergeMinutes(db, report.edgeId, part)
      await rollUpPeaks(db, part)
    }
    return rejected
  })
}

export async function readDays(db: Db, workspaceId: string, from: number, to: number): Promise<DayUsage[]> {
  const rows = await db
    .selectFrom('usage_days')
    .select([
      'day',
      asText('requests').as('requests'),
      asText('bytes_in').as('bytesIn'),
      asText('bytes_out').as('bytesOut'),
      asText('events').as('events'),
      'peak_tunnels as peakTunnels',
    ])
    .where('workspace_id', '=', workspaceId)
    .where('day', '>=', from)
    .where('day', '<=', to)
    .orderBy('day')
    .execute()
  return rows.map((row) => ({
    day: row.day,
    requests: BigInt(row.requests),
    bytesIn: BigInt(row.bytesIn),
    bytesOut: BigInt(row.bytesOut),
    events: BigInt(row.events),
    peakTunnels: row.peakTunnels,
  }))
}

/** A day's last traffic lies within the day, so the newest day that has any holds the latest. */
export async function findLastSeen(db: Db, workspaceId: string): Promise<number | null> {
  const row = await db
    .selectFrom('usage_days')
    .select('last_seen')
    .where('workspace_id', '=', workspaceId)
    .where('last_seen', 'is not', null)
    .orderBy('day', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row?.last_seen ?? null
}

/**
 * Locks the rows by an upsert without change, including new ones, also when distributed. All reports lock in
 * the same order, so they cannot deadlock.
 */
const lockDays = (db: Tx, days: readonly Day[]) =>
  executeBulk(
    db,
    { workspace_id: 'text', day: 'bigint' },
    days.map(({ workspaceId, day }) => [workspaceId, day]),
    `insert into usage_days (workspace_id, day) select workspace_id, day from input where true
     on conflict (workspace_id, day) do update set day = excluded.day`,
  )

const greatest = (table: string, column: string) => {
  const [stored, reported] = [`${table}.${column}`, `excluded.${column}`]
  const isGreater = `${reported} > ${stored} or ${stored} is null`
  return `${column} = case when ${isGreater} then ${reported} else ${stored} end`
}

const counted = ['requests', 'bytes_in', 'bytes_out', 'events']

const mergeCounters = (db: Tx, { edgeId, epoch }: ParsedReport, counters: readonly Counter[]) =>
  executeBulk(
    db,
    {
      workspace_id: 'text',
      day: 'bigint',
      edge_id: 'text',
      epoch: 'text',
      requests: 'bigint',
      bytes_in: 'bigint',
      bytes_out: 'bigint',
      events: 'bigint',
      last_seen: 'bigint',
    },
    counters.map(({ workspaceId, day, requests, bytesIn, bytesOut, events, lastSeen }) => [
      workspaceId,
      day,
      edgeId,
      epoch,
      requests,
      bytesIn,
      bytesOut,
      events,
      lastSeen,
    ]),
    `insert into usage_counters (workspace_id, day, edge_id, epoch, ${counted.join(', ')}, last_seen)
     select * from input where true
     on conflict (workspace_id, day, edge_id, epoch) do update set
       ${[...counted, 'last_seen'].map((column) => greatest('usage_counters', column)).join(', ')}`,
  )

const mergeMinutes = (db: Tx, edgeId: string, tunnels: readonly TunnelMinute[]) =>
  executeBulk(
    db,
    { workspace_id: 'text', minute: 'bigint', edge_id: 'text', open: 'bigint' },
    tunnels.map(({ workspaceId, minute, open }) => [workspaceId, minute, edgeId, open]),
    `insert into usage_minutes (workspace_id, minute, edge_id, open) select * from input where true
     on conflict (workspace_id, minute, edge_id) do update set ${greatest('usage_minutes', 'open')}`,
  )

const rollUpCounters = (db: Tx, days: readonly Day[]) =>
  executeBulk(
    db,
    { workspace_id: 'text', day: 'bigint' },
    days.map(({ workspaceId, day }) => [workspaceId, day]),
    `insert into usage_days (workspace_id, day, ${counted.join(', ')}, last_seen)
     select c.workspace_id, c.day, ${counted.map((column) => `sum(c.${column})`).join(', ')}, max(c.last_seen)
     from input join usage_counters as c on c.workspace_id = input.workspace_id and c.day = input.day
     group by c.workspace_id, c.day
     on conflict (workspace_id, day) do update set
       ${[...counted, 'last_seen'].map((column) => `${column} = excluded.${column}`).join(', ')}`,
  )

/** A minute's sum over all edges never decreases, so only the reported minutes can raise the day's peak. */
const rollUpPeaks = (db: Tx, tunnels: readonly TunnelMinute[]) =>
  executeBulk(
    db,
    { workspace_id: 'text', minute: 'bigint' },
    tunnels.map(({ workspaceId, minute }) => [workspaceId, minute]),
    `insert into usage_days (workspace_id, day, peak_tunnels)
     select workspace_id, day, max(open) from (
       select m.workspace_id, m.minute - m.minute % ${DAY_MS} as day, sum(m.open) as open
       from input join usage_minutes as m on m.workspace_id = input.workspace_id and m.minute = input.minute
       group by m.workspace_id, m.minute
     ) as minutes
     group by workspace_id, day
     on conflict (workspace_id, day) do update set ${greatest('usage_days', 'peak_tunnels')}`,
  )
