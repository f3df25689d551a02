// Metrics as data, and the registry that renders them. A metric reads its values when it is scraped.
// prom-client is loaded only if metrics are enabled; it adds the metrics of the process.
import type { Metric, MetricObject, Registry } from 'prom-client'
import { DurationHistogram } from './instruments.ts'

export type Labels = Readonly<Record<string, string>>
type MaybePromise<T> = T | Promise<T>
type Values = number | Iterable<readonly [Labels, number]>

interface Sample {
  labels: Labels
  value: number
  /** The name of a histogram sample, which has a suffix. */
  metricName?: string
}

export interface MetricDefinition {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  /** How the values of several workers are combined. */
  readonly aggregator: Aggregator
  read(): MaybePromise<Sample[]>
}

type Aggregator = 'sum' | 'min' | 'max' | 'first'

const toSamples = (values: Values): Sample[] =>
  typeof values === 'number'
    ? [{ labels: {}, value: values }]
    : Array.from(values, ([labels, value]) => ({ labels, value }))

const plain =
  (type: 'counter' | 'gauge') =>
  (
    name: string,
    help: string,
    read: () => MaybePromise<Values>,
    aggregator: Aggregator = 'sum',
  ): MetricDefinition => ({
    name,
    help,
    type,
    aggregator,
    read() {
      const values = read()
      return values instanceof Promise ? values.then(toSamples) : toSamples(values)
    },
  })

export const counter = plain('counter')
export const gauge = plain('gauge')

export const histogram = (
  name: string,
  help: string,
  read: () => Iterable<readonly [Labels, DurationHistogram]>,
): MetricDefinition => ({
  name,
  help,
  type: 'histogram',
  aggregator: 'sum',
  read: () => Array.from(read(), ([labels, durations]) => histogramSamples(name, labels, durations)).flat(),
})

/** A sample for each property. */
export const byLabel = (label: string, counts: Readonly<Record<string, number>>) =>
  Object.entries(counts).map(([value, count]): [Labels, number] => [{ [label]: value }, count])

function histogramSamples(name: string, labels: Labels, { counts, sumMs }: DurationHistogram): Sample[] {
  let count = 0
  const buckets = Array.from(counts, (inBucket, index) => {
    count += inBucket
    const le = String(DurationHistogram.bucketsS[index] ?? '+Inf')
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: count }
  })
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sumMs / 1_000 },
    { metricName: `${name}_count`, labels, value: count },
  ]
}

/** They list every open connection at each scrape; the number of file descriptors says as much. */
const UNUSED_DEFAULTS = ['handles', 'requests', 'resources'].flatMap((kind) => [
  `nodejs_active_${kind}`,
  `nodejs_active_${kind}_total`,
])

export async function createRegistry(definitions: readonly MetricDefinition[]): Promise<Registry> {
  const { Registry, collectDefaultMetrics } = await import('prom-client')
  const registry = new Registry()
  for (const definition of definitions) registry.registerMetric(toMetric(definition))
  collectDefaultMetrics({ register: registry })
  for (const name of UNUSED_DEFAULTS) registry.removeSingleMetric(name)
  return registry
}

/** What a registry calls of a metric. prom-client's own look up the labels of each value that they count. */
function toMetric({ name, help, type, aggregator, read }: MetricDefinition): Metric {
  const get = async () => ({ name, help, type, values: await read(), aggregator })
  return { name, get } satisfies Pick<MetricObject, 'name'> & { get(): unknown } as unknown as Metric
}
