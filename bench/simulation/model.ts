// A discrete-event simulation of usage reports: edges that report, nodes that merge them in groups, one
// PostgreSQL, and back-pressure. The rules are the program's own functions and constants; the costs are
// measured. The same input gives the same result.
import { createReportPacing, type ReportPacing } from '../../src/domain/report-pacing.ts'
import { reportDelayMs } from '../../src/edge-sdk/report-delay.ts'
import { POSTGRES_CONCURRENCY } from '../../src/store/usage-lanes.ts'
import { GROUP_ITEMS_MAX, QUEUE_ITEMS_MAX } from '../../src/store/usage-merger.ts'
import { createRandom, type Random } from '../../test/support/random.ts'
import type { Costs } from './costs.ts'
import { createEventQueue } from './event-queue.ts'

const REPORT_EVERY_MS = 5_000
const MINUTE_S = 60
const HOUR_S = 3_600
const DAY_S = 24 * HOUR_S
const RETRY_S = 5
/** Length of a bucket of the result. */
export const BUCKET_S = 10

export interface Scenario {
  edges: number
  nodes: number
  databaseCores: number
  hasBackPressure: boolean
  /** Workspaces with an open tunnel, per edge. */
  openPerEdge: (second: number) => number
  /** Mean seconds between two requests to a workspace at an edge. */
  requestGapS: number
  /** The second of the day at the start. */
  startsAt: number
  seconds: number
  /** The database is unreachable from the first second until the second one. */
  outage?: readonly [from: number, to: number]
}

export interface Bucket {
  second: number
  reports: number
  /** Counters and minutes that were committed. */
  items: number
  /** Reports that got 503. */
  rejected: number
  /** The interval that edges were asked for last. */
  intervalS: number
  /** Share of the time that the nodes were merging. */
  busy: number
  /** How long usage was not yet in a total: from an edge's last report to the commit of its next one. */
  ageMeanS: number
  ageMaxS: number
}

interface Edge {
  id: string
  node: number
  /** Usage up to here is committed. */
  committedAt: number
  /** Workspaces that have a row of this day, and the hour whose rows exist. */
  seen: number
  day: number
  hour: number
}

interface Report {
  edge: Edge
  at: number
  items: number
  costMs: number
  finish: ReturnType<ReportPacing['start']>
}

interface Node {
  pacing: ReportPacing
  queue: Report[]
  queuedItems: number
  /** Merges in progress, and since when that is the number. */
  merges: number
  since: number
}

export function simulate(scenario: Scenario, costs: Costs, seed = 'adit'): Bucket[] {
  const random = createRandom(seed)
  let now = 0
  const clock = { now: () => now * 1000 }
  const nodes: Node[] = Array.from({ length: scenario.nodes }, () => ({
    pacing: createReportPacing(clock),
    queue: [],
    queuedItems: 0,
    merges: 0,
    since: 0,
  }))
  const events = createEventQueue<() => void>()
  const buckets = createBuckets(scenario)
  const jitter = () => random.between(0, 1)
  const isDown = (second: number) =>
    scenario.outage !== undefined && second >= scenario.outage[0] && second < scenario.outage[1]
  let merging = 0

  function nextReport(edge: Edge, waitS: number): void {
    const asked = scenario.hasBackPressure ? waitS : RETRY_S
    events.add(now + reportDelayMs(REPORT_EVERY_MS, asked, jitter) / 1000, () => send(edge))
  }

  function send(edge: Edge): void {
    const node = nodes[edge.node] as Node
    const { items, costMs } = contentOf(edge, now, scenario, costs, random)
    if (items === 0) {
      nextReport(edge, RETRY_S)
      return
    }
    const finish = node.pacing.start(edge.id, items)
    const bucket = buckets.at(now)
    bucket.reports += 1
    const isFull = node.queuedItems + items > QUEUE_ITEMS_MAX
    if (isFull || isDown(now)) {
      bucket.rejected += 1
      nextReport(edge, finish(isFull ? 'rejected' : 'merged'))
      return
    }
    node.queue.push({ edge, at: now, items, costMs, finish })
    node.queuedItems += items
    if (node.merges < POSTGRES_CONCURRENCY) merge(node)
  }

  function addBusy(node: Node): void {
    if (node.merges > 0) buckets.addBusy(node.since, now)
    node.since = now
  }

  function merge(node: Node): void {
    const group = takeGroup(node)
    addBusy(node)
    node.merges += 1
    merging += 1
    const busyCores = merging * (costs.databaseCpuMs / costs.counterMs)
    const slowdown = Math.max(1, busyCores / scenario.databaseCores)
    const rowsMs = group.reduce((sum, { costMs }) => sum + costMs, 0)
    const endsAt = now + (slowdown * (costs.transactionMs + rowsMs)) / 1000
    events.add(endsAt, () => {
      merging -= 1
      addBusy(node)
      node.merges -= 1
      for (const report of group) complete(report)
      if (node.queue.length > 0) merge(node)
    })
  }

  function complete({ edge, at, items, finish }: Report): void {
    const bucket = buckets.at(now)
    const waitS = finish('merged')
    if (isDown(now)) bucket.rejected += 1
    else {
      bucket.items += items
      bucket.intervalS = waitS
      buckets.addAge(bucket, now - edge.committedAt)
      edge.committedAt = at
    }
    nextReport(edge, waitS)
  }

  for (let number = 0; number < scenario.edges; number++) {
    const edge = {
      id: `edge_${number}`,
      node: number % scenario.nodes,
      committedAt: 0,
      seen: 0,
      day: -1,
      hour: -1,
    }
    events.add(random.between(0, REPORT_EVERY_MS / 1000), () => send(edge))
  }
  for (let next = events.take(); next && next.at < scenario.seconds; next = events.take()) {
    now = next.at
    next.event()
  }
  return buckets.list()
}

/** As the program's merger does. */
function takeGroup(node: Node): Report[] {
  let count = 0
  let items = 0
  for (const report of node.queue) {
    if (count > 0 && items + report.items > GROUP_ITEMS_MAX) break
    count += 1
    items += report.items
  }
  node.queuedItems -= items
  return node.queue.splice(0, count)
}

/**
 * What an edge has to report: the counters that changed since its last commit, and each minute's open tunnels
 * once. A counter's first report of a day and the first of an hour insert rows, which costs more.
 */
function contentOf(edge: Edge, now: number, scenario: Scenario, costs: Costs, random: Random) {
  const open = scenario.openPerEdge(now)
  const elapsedS = now - edge.committedAt
  const expected = open * (1 - Math.exp(-elapsedS / scenario.requestGapS))
  const counters = Math.round(expected * random.between(0.9, 1.1))
  const second = scenario.startsAt + now
  const day = Math.floor(second / DAY_S)
  if (day !== edge.day) edge.seen = 0
  edge.day = day
  const added = Math.round(counters * Math.max(0, 1 - edge.seen / open))
  edge.seen += added
  const minutes = Math.floor(second / MINUTE_S) - Math.floor((second - elapsedS) / MINUTE_S)
  const hour = Math.floor(second / HOUR_S)
  const hourMs = hour === edge.hour ? costs.hourMs : costs.newHourMs
  if (minutes > 0) edge.hour = hour
  const hours = minutes > 0 ? open : 0
  return {
    items: counters + Math.round(open * minutes),
    costMs:
      (counters - added) * costs.counterMs +
      added * costs.newCounterMs +
      hours * (hourMs + minutes * costs.minuteMs),
  }
}

function createBuckets({ seconds, nodes }: Scenario) {
  const buckets = Array.from({ length: Math.ceil(seconds / BUCKET_S) }, (_, index) => ({
    second: index * BUCKET_S,
    reports: 0,
    items: 0,
    rejected: 0,
    intervalS: REPORT_EVERY_MS / 1000,
    busy: 0,
    ageMeanS: 0,
    ageMaxS: 0,
  }))
  const ages = buckets.map(() => ({ sum: 0, count: 0 }))
  const indexOf = (second: number) => Math.min(buckets.length - 1, Math.floor(second / BUCKET_S))
  return {
    at: (second: number) => buckets[indexOf(second)] as Bucket,
    addBusy(from: number, to: number) {
      for (let start = from; start < to; ) {
        const end = Math.min(to, (Math.floor(start / BUCKET_S) + 1) * BUCKET_S)
        ;(buckets[indexOf(start)] as Bucket).busy += (end - start) / BUCKET_S / nodes
        start = end
      }
    },
    addAge(bucket: Bucket, ageS: number) {
      const age = ages[indexOf(bucket.second)] as { sum: number; count: number }
      age.sum += ageS
      age.count += 1
      bucket.ageMaxS = Math.max(bucket.ageMaxS, ageS)
    },
    list: (): Bucket[] =>
      buckets.map((bucket, index) => {
        const { sum, count } = ages[index] as { sum: number; count: number }
        return { ...bucket, ageMeanS: count > 0 ? sum / count : 0 }
      }),
  }
}
