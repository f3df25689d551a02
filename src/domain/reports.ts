// Reports of edges: times are checked, workspaces found, and what can be taken is merged.
import type { Static } from 'typebox'
import { REPORT_ITEMS_MAX, type reportUsage } from '../contract/reports.ts'
import { DAY_MS, startOfDay } from '../store/time.ts'
import { mergeReport } from '../store/usage.ts'
import type { Totals } from '../store/usage-limits.ts'
import type { Counter, Day, TunnelMinute } from '../store/usage-report.ts'
import type { Services } from './context.ts'
import { invalid } from './fault.ts'

const MINUTE_MS = 60_000
/** Older than that, a day is closed: its counters need not be kept apart for ever. */
const DAYS_BACK_MAX = 35
/** Clocks differ a little. */
const AHEAD_MAX_MS = 5 * MINUTE_MS

/** What 1 Gbit/s carries in a day, in each direction. */
const BYTES_PER_GBPS = 125_000_000n * 86_400n
/** Neither a request nor the opening of a tunnel takes less. */
const BYTES_PER_EVENT = 100n

/**
 * The most that an edge with such a link can have counted in a day. At 100 Gbit/s, over 8,000 edges can report that much for
 * one workspace before 63 bits are full.
 */
export function dailyMaxOf(gbps: number): Totals {
  const bytes = BigInt(gbps) * BYTES_PER_GBPS
  const events = bytes / BYTES_PER_EVENT
  return { requests: events, bytesIn: bytes, bytesOut: bytes, events }
}

type Given = Static<(typeof reportUsage)['body']>
type Receipt = Static<(typeof reportUsage)['response']['schema']>
type Reason = Receipt['refused'][number]['reason']

/** Finds the ids of workspaces, as far as they exist, by their slugs. */
export type FindWorkspaceIds = (slugs: Iterable<string>) => Promise<ReadonlyMap<string, string>>

export async function ingestReport(
  services: Services,
  findWorkspaceIds: FindWorkspaceIds,
  edgeId: string,
  given: Given,
): Promise<Receipt> {
  const { epoch, counters = [], tunnels = [] } = given
  if (counters.length + tunnels.length > REPORT_ITEMS_MAX)
    throw invalid('/body', `must not hold more than ${REPORT_ITEMS_MAX} items`)
  // All of it is read before any of it is taken: a report that is malformed anywhere is refused whole.
  const days = new Map<string, number>()
  const readCounters = counters.map((item, index) => readCounter(item, index, days))
  const readTunnels = tunnels.map(readTunnelMinute)
  const slugs = new Set([...counters, ...tunnels].map(({ workspace }) => workspace))
  const workspaces = await findWorkspaceIds(slugs)
  const now = services.clock()
  const refused: Receipt['refused'] = []

  function accepted<T extends Timed>(list: 'counters' | 'tunnels', items: T[]) {
    return items.flatMap((item, index) => {
      const workspaceId = workspaces.get(item.workspace)
      const reason = workspaceId === undefined ? 'unknown_workspace' : refusalOf(item, now)
      if (workspaceId !== undefined && reason === undefined) return [{ ...item, index, workspaceId }]
      refused.push({ list, index, reason: reason as Reason })
      return []
    })
  }

  const report = {
    edgeId,
    epoch,
    counters: accepted('counters', readCounters),
    tunnels: accepted('tunnels', readTunnels),
  }
  const refusals = await mergeReport(services.store, report, services.edgeDayMax)
  const reasons = new Map(refusals.map((one) => [dayKey(one), one.reason]))
  for (const item of report.counters) {
    const reason = reasons.get(dayKey(item))
    if (reason !== undefined) refused.push({ list: 'counters', index: item.index, reason })
  }
  refused.sort((a, b) => (a.list < b.list ? -1 : a.list > b.list ? 1 : a.index - b.index))
  return { accepted: counters.length + tunnels.length - refused.length, refused }
}

const dayKey = ({ workspaceId, day }: Day) => `${day} ${workspaceId}`

interface Timed {
  workspace: string
  /** The first and the last moment that the item speaks of. */
  from: number
  to: number
}

function refusalOf({ from, to }: Timed, now: number): Reason | undefined {
  if (to > now + AHEAD_MAX_MS) return 'in_future'
  return startOfDay(from) < startOfDay(now) - DAYS_BACK_MAX * DAY_MS ? 'too_old' : undefined
}

function readCounter(
  item: NonNullable<Given['counters']>[number],
  index: number,
  days: Map<string, number>,
): Timed & Omit<Counter, 'workspaceId'> {
  const place = `/body/counters/${index}`
  // Thousands of items speak of few days.
  const day = days.get(item.day) ?? parseTimestamp(`${item.day}T00:00:00.000Z`, `${place}/day`)
  days.set(item.day, day)
  const lastSeen = item.lastSeen === undefined ? null : parseTimestamp(item.lastSeen, `${place}/lastSeen`)
  if (lastSeen !== null && startOfDay(lastSeen) !== day)
    throw invalid(`${place}/lastSeen`, 'must lie within the day of its counters')
  return {
    workspace: item.workspace,
    from: day,
    to: lastSeen ?? day,
    day,
    requests: BigInt(item.requests),
    bytesIn: BigInt(item.bytesIn),
    bytesOut: BigInt(item.bytesOut),
    events: BigInt(item.events),
    lastSeen,
  }
}

function readTunnelMinute(
  item: NonNullable<Given['tunnels']>[number],
  index: number,
): Timed & Omit<TunnelMinute, 'workspaceId'> {
  const place = `/body/tunnels/${index}/minute`
  const minute = parseTimestamp(item.minute, place)
  if (minute % MINUTE_MS !== 0) throw invalid(place, 'must be the start of a minute')
  return { workspace: item.workspace, from: minute, to: minute, minute, open: item.open }
}

/** The language would take 30 February for 2 March, and 24 o'clock for the next day; here these are mistakes. */
function parseTimestamp(text: string, place: string): number {
  const moment = Date.parse(text)
  if (Number.isNaN(moment) || new Date(moment).getUTCDate() !== Number(text.slice(8, 10)))
    throw invalid(place, 'must be a moment that exists')
  return moment
}
