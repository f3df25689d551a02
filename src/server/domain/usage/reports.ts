// Ingestion of usage reports: validates times, resolves workspaces, and merges the accepted items.
import type { Static } from 'typebox'
import { REPORT_ITEMS_MAX, type reportUsage } from '../../../contract/edge/reports.ts'
import { TUNNELS_PER_EDGE_MAX } from '../../../contract/edge/tunnels.ts'
import { DAY_MS, MINUTE_MS, startOfDay } from '../../../lib/time.ts'
import { type Counter, dayKey, type Totals, type TunnelMinute } from '../../store/engine/usage-report.ts'
import type { EdgeRef } from '../../verification/edge-workspaces.ts'
import type { Services } from '../context.ts'
import { invalid } from '../fault.ts'
import { parseTimestamp } from '../timestamps.ts'

/** Reports for older days are rejected, so that their counters can be deleted. */
export const DAYS_BACK_MAX = 35
/** Tolerated clock skew. */
const AHEAD_MAX_MS = 5 * MINUTE_MS

/** Bytes that 1 Gbit/s carries in a day, in each direction. */
const BYTES_PER_GBPS = 125_000_000n * 86_400n
/** Minimum size of a request or of opening a tunnel. */
const BYTES_PER_EVENT = 100n

/**
 * Maximum usage per day of an edge with that bandwidth. At 100 Gbit/s, over 8,000 edges can report the
 * maximum for one workspace before 63 bits overflow.
 */
export function dailyMaximum(gbps: number): Totals {
  const bytes = BigInt(gbps) * BYTES_PER_GBPS
  const events = bytes / BYTES_PER_EVENT
  return { requests: events, bytesIn: bytes, bytesOut: bytes, events }
}

type UsageReport = Static<(typeof reportUsage)['body']>
type Receipt = Static<(typeof reportUsage)['response']['schema']>
type Reason = Receipt['rejected'][number]['reason']

/** Ids by slug, without workspaces of other groups: to the edge, they do not exist. */
type FindWorkspaceIds = (edge: EdgeRef, slugs: Iterable<string>) => Promise<ReadonlyMap<string, string>>

export async function ingestReport(
  services: Services,
  findWorkspaceIds: FindWorkspaceIds,
  edge: EdgeRef,
  request: UsageReport,
): Promise<Receipt> {
  const { epoch, counters = [], tunnels = [] } = request
  if (counters.length + tunnels.length > REPORT_ITEMS_MAX)
    throw invalid('/body', `must not have more than ${REPORT_ITEMS_MAX} items`)
  // Parse everything before merging anything: a malformed report is rejected as a whole.
  const days = new Map<string, number>()
  const parsedCounters = counters.map((item, index) => parseCounter(item, index, days))
  const parsedTunnels = tunnels.map(parseTunnelMinute)
  const slugs = [...counters, ...tunnels].map(({ workspace }) => workspace)
  const workspaces = await findWorkspaceIds(edge, new Set(slugs))
  const now = services.clock()
  const rejected: Receipt['rejected'] = []

  /** Sets the workspaces of the items in place, because copying thousands takes noticeably longer. */
  function accept<T extends ParsedItem>(list: 'counters' | 'tunnels', items: T[]): T[] {
    return items.filter((item) => {
      const workspaceId = workspaces.get(item.workspace)
      const reason = workspaceId === undefined ? 'unknown_workspace' : rejectionReason(item, now)
      if (reason !== undefined) rejected.push({ list, index: item.index, reason })
      else item.workspaceId = workspaceId as string
      return reason === undefined
    })
  }

  const report = {
    edgeId: edge.id,
    epoch,
    counters: accept('counters', parsedCounters),
    tunnels: accept('tunnels', parsedTunnels),
  }
  const overLimit = await services.commitUsage(report)
  services.afterReport(report.counters)
  const reasons = new Map(overLimit.map((day) => [dayKey(day), day.reason]))
  for (const item of reasons.size > 0 ? report.counters : []) {
    const reason = reasons.get(dayKey(item))
    if (reason !== undefined) rejected.push({ list: 'counters', index: item.index, reason })
  }
  rejected.sort((a, b) => (a.list < b.list ? -1 : a.list > b.list ? 1 : a.index - b.index))
  const accepted = counters.length + tunnels.length - rejected.length
  const { instruments } = services
  instruments.usageReports += 1
  instruments.usageItems.accepted += accepted
  for (const { reason } of rejected) instruments.usageItems[reason] += 1
  return { accepted, rejected }
}

interface ParsedItem {
  /** Index in its list of the report. */
  index: number
  workspace: string
  /** Empty until the item is accepted. */
  workspaceId: string
  /** First and last time of the item. */
  from: number
  to: number
}

function rejectionReason({ from, to }: ParsedItem, now: number): Reason | undefined {
  if (to > now + AHEAD_MAX_MS) return 'in_future'
  return startOfDay(from) < startOfDay(now) - DAYS_BACK_MAX * DAY_MS ? 'too_old' : undefined
}

function parseCounter(
  item: NonNullable<UsageReport['counters']>[number],
  index: number,
  days: Map<string, number>,
): ParsedItem & Counter {
  const path = (field: string) => `/body/counters/${index}/${field}`
  // Thousands of items share a few days.
  let day = days.get(item.day)
  if (day === undefined) {
    day = parseTimestamp(`${item.day}T00:00:00.000Z`, () => path('day'))
    days.set(item.day, day)
  }
  let lastSeen: number | null = null
  if (item.lastSeen !== undefined) {
    lastSeen = parseTimestamp(item.lastSeen, () => path('lastSeen'), item.day)
    if (startOfDay(lastSeen) !== day) throw invalid(path('lastSeen'), 'must be within `day`')
  }
  return {
    index,
    workspace: item.workspace,
    workspaceId: '',
    from: day,
    to: lastSeen ?? day,
    day,
    requests: item.requests,
    bytesIn: item.bytesIn,
    bytesOut: item.bytesOut,
    events: item.events,
    lastSeen,
  }
}

function parseTunnelMinute(
  { workspace, minute: text, open }: NonNullable<UsageReport['tunnels']>[number],
  index: number,
): ParsedItem & TunnelMinute {
  const path = () => `/body/tunnels/${index}/minute`
  const minute = parseTimestamp(text, path)
  if (minute % MINUTE_MS !== 0) throw invalid(path(), 'must be the start of a minute')
  // No edge is admitted more tunnels, so a larger number is wrong.
  const peak = Math.min(open, TUNNELS_PER_EDGE_MAX)
  return { index, workspace, workspaceId: '', from: minute, to: minute, minute, open: peak }
}
