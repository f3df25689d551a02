// Group commit of usage reports: those that arrive while merges are running are merged together by the next
// transaction. So a burst of small reports costs few commits, and few connections.
import { isUnavailable, Overloaded } from '../engine/errors.ts'
import type { RejectedCounter } from '../engine/usage-limits.ts'
import type { ParsedReport } from '../engine/usage-report.ts'

/** Items of one transaction; a single report may have as many. */
const GROUP_ITEMS_MAX = 5_000
/** Items that wait, in total: some seconds of work. Beyond, reports are rejected with 503. */
const QUEUE_ITEMS_MAX = 100_000

type Merge = (reports: readonly ParsedReport[]) => Promise<RejectedCounter[][]>

interface Waiting {
  report: ParsedReport
  items: number
  resolve: (rejected: RejectedCounter[]) => void
  reject: (error: unknown) => void
}

/** Merges one report, and returns after its commit. */
export type MergeUsage = (report: ParsedReport) => Promise<RejectedCounter[]>

interface MergerOptions {
  /** Merges at a time. */
  concurrency?: number
  /** Runs a merge when it may start; rejects if it may not, or with the error of the merge. */
  admit?: (start: () => Promise<void>) => Promise<void>
}

export function createUsageMerger(
  merge: Merge,
  { concurrency = 1, admit = (start) => start() }: MergerOptions = {},
): MergeUsage {
  const queue: Waiting[] = []
  let queuedItems = 0
  let running = 0

  function takeGroup(): Waiting[] {
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

  async function run(): Promise<void> {
    running += 1
    while (queue.length > 0) {
      let group: Waiting[] | undefined
      try {
        // The group is taken when the merge starts, so it has the reports that arrived while it waited.
        await admit(() => {
          group = takeGroup()
          return mergeGroup(group)
        })
      } catch (error) {
        for (const { reject } of group ?? takeGroup()) reject(error)
      }
    }
    running -= 1
  }

  async function mergeGroup(group: readonly Waiting[]): Promise<void> {
    // Another merge may have taken the reports while this one waited to be admitted.
    if (group.length === 0) return
    try {
      const rejected = await merge(group.map(({ report }) => report))
      for (const [index, { resolve }] of group.entries()) resolve(rejected[index] as RejectedCounter[])
    } catch (error) {
      if (group.length === 1 || isUnavailable(error)) throw error
      // An unexpected error may be caused by one report, which must not fail the others.
      for (const each of group) await mergeGroup([each]).catch(each.reject)
    }
  }

  return (report) => {
    const items = report.counters.length + report.tunnels.length
    const { promise, resolve, reject } = Promise.withResolvers<RejectedCounter[]>()
    if (queuedItems + items > QUEUE_ITEMS_MAX)
      return Promise.reject(new Overloaded('Too many usage reports.'))
    queue.push({ report, items, resolve, reject })
    queuedItems += items
    if (running < concurrency) void run()
    return promise
  }
}
