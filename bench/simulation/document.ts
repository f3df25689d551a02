// The results as Markdown.
import type { Line } from './chart.ts'
import type { Costs } from './costs.ts'
import type { Bucket } from './model.ts'
import type { Size } from './scenarios.ts'
import type { Storage } from './storage.ts'

interface Results {
  machine: string
  costs: Costs
  storage: Storage
  sizes: readonly (Size & { buckets: readonly Bucket[] })[]
  lines: readonly Line[]
}

/** The last five minutes of a run count; the last bucket is not whole. */
const SETTLED_BUCKETS = 30
const BUCKET_S = 10

export function resultsOf({ machine, costs, storage, sizes, lines }: Results): string {
  return [
    ...costTable(machine, costs),
    '',
    ...sizeTable(sizes, costs),
    '',
    ...lineTable(lines),
    '',
    ...storageTable(storage),
    '',
  ].join('\n')
}

const micros = (ms: number) => `${Math.round(ms * 1000)} µs`

const costTable = (machine: string, costs: Costs) => [
  '| measured | |',
  '|---|---|',
  `| where | ${machine} |`,
  `| transaction of a merge, without its rows | ${costs.transactionMs.toFixed(1)} ms |`,
  `| counter whose row exists; the first of its day | ${micros(costs.counterMs)}; ${micros(costs.newCounterMs)} |`,
  `| open tunnels of a workspace; the first of the hour | ${micros(costs.hourMs)}; ${micros(costs.newHourMs)} |`,
  `| each minute of them | ${micros(costs.minuteMs)} |`,
  `| CPU time for a counter: PostgreSQL; node | ${micros(costs.databaseCpuMs)}; ${micros(costs.nodeCpuMs)} |`,
  `| write-ahead log for a counter | ${costs.walBytes} bytes |`,
  `| deleting an hour of a workspace and edge | ${micros(costs.deletedRowMs)} |`,
]

const sizeTable = (sizes: Results['sizes'], costs: Costs) => [
  '| open at the same time | PostgreSQL and nodes | interval | merging | items/s | in a total after | log |',
  '|---|---|---|---|---|---|---|',
  ...sizes.map(({ name, open, buckets }) => {
    const settled = buckets.slice(-SETTLED_BUCKETS - 1, -1)
    const mean = (read: (bucket: Bucket) => number) =>
      settled.reduce((sum, bucket) => sum + read(bucket), 0) / settled.length
    const items = mean((bucket) => bucket.items) / BUCKET_S
    return [
      `| ${open} | ${name}`,
      `${Math.round(mean(({ intervalS }) => intervalS))} s`,
      `${Math.round(100 * mean(({ busy }) => busy))} %`,
      Math.round(items).toLocaleString('en'),
      `${Math.round(mean(({ ageMeanS }) => ageMeanS))} s, at most ${Math.ceil(Math.max(...settled.map(({ ageMaxS }) => ageMaxS)))} s`,
      `${Math.round((items * costs.walBytes) / 1e6)} MB/s |`,
    ].join(' | ')
  }),
]

const lineTable = (lines: readonly Line[]) => [
  '| the half hour of the chart | reports | got 503 | longest time until usage was in a total |',
  '|---|---|---|---|',
  ...lines.map(({ kind, buckets }) => {
    const sum = (read: (bucket: Bucket) => number) =>
      buckets.reduce((total, bucket) => total + read(bucket), 0)
    const longest = Math.ceil(Math.max(...buckets.map(({ ageMaxS }) => ageMaxS)))
    const count = (value: number) => value.toLocaleString('en')
    return `| ${kind} back-pressure | ${count(sum(({ reports }) => reports))} | ${count(sum(({ rejected }) => rejected))} | ${longest} s |`
  }),
]

const storageTable = (storage: Storage) => [
  '| table, with indexes | bytes per row |',
  '|---|---|',
  `| \`usage_counters\` | ${storage.counterBytes} |`,
  `| \`usage_days\` | ${storage.dayBytes} |`,
  `| \`usage_hours\`, if the number of open tunnels stays the same | ${storage.steadyHourBytes} |`,
  `| \`usage_hours\`, if it changes every minute | ${storage.busyHourBytes} |`,
]
