// For the operator: shows a day's usage by edge and epoch, and resets it after wrong reports.
import { listEdges } from '../../store/tunnels/edges.ts'
import { readDays } from '../../store/usage/commit.ts'
import { listCounters, resetDay } from '../../store/usage/reset.ts'
import { writeAudit } from '../audit/entries.ts'
import type { Actor, Services } from '../context.ts'
import { lastDays } from '../date-range.ts'
import { Fault, invalid } from '../fault.ts'
import { isoOrNull, parseTime, toIso } from '../timestamps.ts'
import { getBySlug } from '../workspaces/manage.ts'
import { DAYS_BACK_MAX } from './reports.ts'

const COUNTERS_SHOWN_MAX = 1_000

/** Totals of the days that reports can still change, newest first; days without usage are omitted. */
export async function showDays(services: Services, slug: string) {
  const { id } = await getBySlug(services, slug)
  const window = lastDays(1 + DAYS_BACK_MAX, services.clock())
  const rows = await readDays(services.store.db, id, window[0] as number, window.at(-1) as number)
  return rows.map(({ day, ...totals }) => ({ day: formatDay(day), ...totals })).reverse()
}

/** Counters of a day by edge and epoch, largest first. */
export async function showCounters(services: Services, slug: string, date: string) {
  const day = parseDay(date)
  const { id: workspaceId } = await getBySlug(services, slug)
  const rows = await listCounters(services.store.db, { workspaceId, day }, COUNTERS_SHOWN_MAX)
  return rows.map((row) => ({
    edge: row.edge,
    name: row.name,
    epoch: row.epoch,
    requests: BigInt(row.requests),
    bytesIn: BigInt(row.bytesIn),
    bytesOut: BigInt(row.bytesOut),
    events: BigInt(row.events),
    lastSeen: isoOrNull(row.lastSeen),
  }))
}

/**
 * Deletes the reported usage of a day. An edge that still runs reports the total of its epoch again; epochs
 * that have ended are not reported again.
 */
export async function resetUsage(
  services: Services,
  actor: Actor,
  { workspace, day: date, edge }: { workspace: string; day: string; edge?: string | undefined },
) {
  const day = parseDay(date)
  const { id: workspaceId } = await getBySlug(services, workspace)
  const isDistributed = await services.store.usageShards.isDistributed()
  const removed = await services.store.transaction(async (db) => {
    const removed = await resetDay({ db, isDistributed }, { workspaceId, day }, edge)
    if (!removed) throw noUsage(date, edge)
    const edgeRow = edge === undefined ? undefined : (await listEdges(db)).find(({ id }) => id === edge)
    const name = edge === undefined ? date : `${date} of edge ${edgeRow?.name ?? edge}`
    await writeAudit(db, services, {
      workspaceId,
      actor,
      action: 'usage.reset',
      target: { id: date, name },
    })
    return removed
  })
  return { workspace, day: date, ...(edge !== undefined && { edge }), ...removed }
}

const noUsage = (date: string, edge: string | undefined) =>
  new Fault('not_found', {
    message: `No usage on ${date}${edge === undefined ? '' : ` from the edge ${edge}`}.`,
  })

const formatDay = (day: number) => toIso(day).slice(0, 10)

function parseDay(date: string): number {
  const day = /^\d{4}-\d{2}-\d{2}$/.test(date) ? parseTime(date) : undefined
  if (day === undefined) throw invalid('--day', `must be a UTC day such as ${formatDay(0)}`)
  return day
}
