// Group commit of usage reports: reports that arrive during a commit are merged in the next transaction, so
// that a burst of small reports costs few commits and few connections.
import { DatabaseUnreachable, isUnavailable, Overloaded } from '../engine/errors.ts'
import type { RejectedCounter } from '../engine/usage-limits.ts'
import type { ParsedReport } from '../engine/usage-report.ts'

/** Maximum items of a transaction, and of a single report. */
const GROUP_ITEMS_MAX = 5_000
/** Limit of queued items, some seconds of work; above it, reports are rejected with 503. */
const QUEUE_ITEMS_MAX = 100_000
/** A report that has waited longer is rejected, so that it is answered before its edge sends it again. */
const QUEUE_WAIT_MAX_MS = 4_000

type Commit = (reports: readonly ParsedReport[]) => Promise<RejectedCounter[][]>

interface QueuedReport {
  report: ParsedReport
  items: number
  queuedAt: number
  resolve: (rejected: RejectedCounter[]) => void
  reject: (error: unknown) => void
}

/** Merges one report into the stored usage, and returns after the commit. */
export type CommitUsage = (report: ParsedReport) => Promise<RejectedCounter[]>

interface GroupCommitOptions {
  /** Maximum number of concurrent commits. */
  concurrency?: number
  /** Runs a commit when it may start. Rejects if it may not, or if the commit fails. */
  admit?: (start: () => Promise<void>) => Promise<void>
}

export function createGroupCommit(
  commit: Commit,
  { concurrency = 1, admit = (start) => start() }: GroupCommitOptions = {},
): CommitUsage {
  const queue: QueuedReport[] = []
  let queuedItems = 0
  let running = 0

  function takeGroup(): QueuedReport[] {
    rejectOverdue()
    let count = 0
    let items = 0
    for (const each of queue) {
      if (count > 0 && items + each.items > GROUP_ITEMS_MAX) break
      count += 1
      items += each.items
    }
    queuedItems -= items
    return queue.splice(0, count)
  }

  function rejectOverdue(): void {
    const oldest = performance.now() - QUEUE_WAIT_MAX_MS
    const recent = queue.findIndex(({ queuedAt }) => queuedAt >= oldest)
    const overdue = queue.splice(0, recent < 0 ? queue.length : recent)
    for (const { items } of overdue) queuedItems -= items
    rejectAll(overdue, new Overloaded('The database takes too long to merge usage reports.'))
  }

  async function run(): Promise<void> {
    running += 1
    while (queue.length > 0) {
      let group: QueuedReport[] | undefined
      try {
        // The group is formed when the commit starts, so it has the reports that arrived while it waited.
        await admit(() => {
          group = takeGroup()
          return commitGroup(group)
        })
      } catch (error) {
        rejectAll(group ?? takeGroup(), error)
        // Each of the others would wait for the timeout of another attempt to connect.
        while (error instanceof DatabaseUnreachable && queue.length > 0) rejectAll(takeGroup(), error)
      }
    }
    running -= 1
  }

  function rejectAll(reports: readonly QueuedReport[], error: unknown): void {
    for (const { reject } of reports) reject(error)
  }

  async function commitGroup(group: readonly QueuedReport[]): Promise<void> {
    // Another commit may have taken the reports while this one waited to be admitted.
    if (group.length === 0) return
    try {
      const rejected = await commit(group.map(({ report }) => report))
      for (const [index, { resolve }] of group.entries()) resolve(rejected[index] as RejectedCounter[])
    } catch (error) {
      if (group.length === 1 || isUnavailable(error)) throw error
      // One report may have caused the error, and must not fail the others.
      for (const [index, each] of group.entries()) {
        const failure: unknown = await commitGroup([each]).catch((reason) => reason)
        if (isUnavailable(failure)) return rejectAll(group.slice(index), failure)
        // Has no effect if the report was committed.
        each.reject(failure)
      }
    }
  }

  return (report) => {
    const items = report.counters.length + report.tunnels.length
    const { promise, resolve, reject } = Promise.withResolvers<RejectedCounter[]>()
    if (queuedItems + items > QUEUE_ITEMS_MAX)
      return Promise.reject(new Overloaded('Too many usage reports.'))
    queue.push({ report, items, queuedAt: performance.now(), resolve, reject })
    queuedItems += items
    if (running < concurrency) void run()
    return promise
  }
}
