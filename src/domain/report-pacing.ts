// Back-pressure on usage reports: how many seconds an edge should wait before its next report, so that
// merging takes about a share of a node's time. Each node decides for itself, from what it measures.
import { REPORT_INTERVAL_MAX_S, REPORT_INTERVAL_S } from '../contract/reports.ts'
import { createLruCache } from '../lru-cache.ts'
import { Overloaded } from '../store/db-errors.ts'
import { Fault, faultOf } from './fault.ts'

/** Share of the time that may be spent merging. */
export const MERGE_SHARE = 0.5
/** Averages cover this many seconds, or three intervals if that is longer, so that every edge is included. */
const WINDOW_MIN_S = 30
const WINDOW_INTERVALS = 3
/** Edges whose last round is known. For an unknown one the default interval is assumed. */
const EDGES_MAX = 100_000
/** A report that comes sooner after the edge's last one ended is a part of it: edges split large reports. */
const ROUND_GAP_S = 1
/** An edge that reports early by less than this part of the interval obeys it: edges vary it by 10 %. */
const EARLY_MAX = 0.2

/** Sums that decay exponentially; only their ratios have a meaning. */
export interface PacingState {
  /** Time of the last update, in seconds. */
  at: number
  elapsedS: number
  /** Time during which at least one report was being merged or waited for that. */
  busyS: number
  mergedItems: number
  /** Items that arrived, each times the period of its round (see `Round`). */
  arrivedItemSeconds: number
}

/** As if the node had been idle for the shortest window, so that the first report alone decides little. */
export const initialPacing = (at: number): PacingState => ({
  at,
  elapsedS: WINDOW_MIN_S,
  busyS: 0,
  mergedItems: 0,
  arrivedItemSeconds: 0,
})

/** The state at a later time; `isBusy` says whether reports were being merged since the last update. */
export function advance(state: PacingState, at: number, isBusy: boolean): PacingState {
  const windowS = Math.max(WINDOW_MIN_S, WINDOW_INTERVALS * intervalOf(state))
  const kept = Math.exp(-Math.max(0, at - state.at) / windowS)
  const passedS = windowS * (1 - kept)
  return {
    at: Math.max(at, state.at),
    elapsedS: state.elapsedS * kept + passedS,
    busyS: state.busyS * kept + (isBusy ? passedS : 0),
    mergedItems: state.mergedItems * kept,
    arrivedItemSeconds: state.arrivedItemSeconds * kept,
  }
}

/**
 * An edge with a period of T seconds contributes T times its items once in T seconds, so the mean of that is
 * the number of items that all edges send in one round, whatever they were asked for before. The interval
 * depends on that number and on the time per item, not on its own last value; so it does not oscillate,
 * although edges obey it late. Edges that ignore the interval take more than their part of the share; the
 * others do not wait longer to make up for that.
 */
export function intervalOf({ elapsedS, busyS, mergedItems, arrivedItemSeconds }: PacingState): number {
  if (mergedItems === 0) return REPORT_INTERVAL_S
  const itemsPerRound = arrivedItemSeconds / elapsedS
  const seconds = (itemsPerRound * busyS) / mergedItems / MERGE_SHARE
  return Math.min(Math.max(Math.ceil(seconds), REPORT_INTERVAL_S), REPORT_INTERVAL_MAX_S)
}

export interface ReportPacing {
  /**
   * Call it when a report arrives. Call the returned function when the report was merged, or rejected because
   * too many are waiting; that one returns the seconds until the edge's next report.
   */
  start(edgeId: string, items: number): (outcome: 'merged' | 'rejected') => number
}

export interface PacingOptions {
  /** Called when the interval rises to twice the default or more. */
  onSlowed?: (intervalS: number) => void
  /** Called when the interval is the default again. */
  onRecovered?: () => void
  /** A monotonic clock in milliseconds. */
  now?: () => number
}

/** The last report of an edge, which may have been sent in parts. Times in seconds. */
interface Round {
  startedAt: number
  endedAt: number
  /** What the edge was asked for at the end. */
  intervalS: number
  /** From the round before to this one. */
  periodS: number
}

/**
 * The period is what the edge was asked for, also if it reports later: it may have been offline, or have
 * reported to other nodes. If it reports early, the period is the time that has passed. Otherwise each rise
 * of the interval would raise the weight of such an edge, and so the interval.
 */
function roundAt(at: number, last: Round | undefined): Round {
  if (last && at - last.endedAt < ROUND_GAP_S) return last
  if (!last) return { startedAt: at, endedAt: at, intervalS: 0, periodS: REPORT_INTERVAL_S }
  const { startedAt, endedAt, intervalS } = last
  const isEarly = at < endedAt + intervalS * (1 - EARLY_MAX)
  const periodS = (isEarly ? at : endedAt + intervalS) - startedAt
  return { startedAt: at, endedAt: at, intervalS, periodS }
}

export function createReportPacing({
  onSlowed,
  onRecovered,
  now = () => performance.now(),
}: PacingOptions = {}): ReportPacing {
  const rounds = createLruCache<Round>(EDGES_MAX)
  let state = initialPacing(now() / 1000)
  let inProgress = 0
  let isSlowed = false

  function update(change: (state: PacingState) => Partial<PacingState>): void {
    const current = advance(state, now() / 1000, inProgress > 0)
    state = { ...current, ...change(current) }
  }

  function nextInterval(): number {
    const interval = intervalOf(state)
    if (!isSlowed && interval >= 2 * REPORT_INTERVAL_S) {
      isSlowed = true
      onSlowed?.(interval)
    } else if (isSlowed && interval === REPORT_INTERVAL_S) {
      isSlowed = false
      onRecovered?.()
    }
    return interval
  }

  return {
    start(edgeId, items) {
      const round = roundAt(Math.max(now() / 1000, state.at), rounds.get(edgeId))
      update(({ arrivedItemSeconds }) => ({ arrivedItemSeconds: arrivedItemSeconds + items * round.periodS }))
      inProgress += 1
      return (outcome) => {
        update(({ mergedItems }) => ({ mergedItems: mergedItems + (outcome === 'merged' ? items : 0) }))
        inProgress -= 1
        const interval = nextInterval()
        rounds.set(edgeId, { ...round, endedAt: state.at, intervalS: interval })
        return interval
      }
    },
  }
}

interface ReportLists {
  counters?: unknown[]
  tunnels?: unknown[]
}

/** Adds `nextReportInS` to the receipt of a report, or Retry-After to the fault of a temporary failure. */
export async function paceReport<R extends object>(
  pacing: ReportPacing,
  edgeId: string,
  { counters = [], tunnels = [] }: ReportLists,
  ingest: () => Promise<R>,
): Promise<R & { nextReportInS: number }> {
  const finish = pacing.start(edgeId, counters.length + tunnels.length)
  try {
    const receipt = await ingest()
    return { ...receipt, nextReportInS: finish('merged') }
  } catch (error) {
    const fault = faultOf(error)
    // A merge that failed has used the database too, so it counts as merged.
    const interval = finish(error instanceof Overloaded ? 'rejected' : 'merged')
    if (fault.code !== 'unavailable') throw fault
    const { message, cause, isLogged, retryAfterS = 0 } = fault
    throw new Fault(fault.code, { message, cause, isLogged, retryAfterS: Math.max(retryAfterS, interval) })
  }
}
