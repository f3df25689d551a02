// Durations of HTTP requests by surface, operation and class of the status. A route gets its histograms when
// it is registered, so a request looks up nothing, and clients cannot add any.
import { DurationHistogram } from './instruments.ts'
import type { Labels } from './registry.ts'

const STATUS_CLASSES = ['1xx', '2xx', '3xx', '4xx', '5xx'] as const

/** The durations of one operation. */
export class OperationDurations {
  readonly byStatusClass: (DurationHistogram | undefined)[] = STATUS_CLASSES.map(() => undefined)

  observe(status: number, ms: number): void {
    const index = Math.trunc(status / 100) - 1
    const histogram = this.byStatusClass[index]
    if (histogram) histogram.observe(ms)
    else this.#add(index)?.observe(ms)
  }

  #add(index: number): DurationHistogram | undefined {
    if (!(index in STATUS_CLASSES)) return undefined
    const histogram = new DurationHistogram()
    this.byStatusClass[index] = histogram
    return histogram
  }
}

export class RequestDurations {
  readonly #operations = new Map<string, { labels: Labels; durations: OperationDurations }>()
  /** The durations of requests that match no route. */
  readonly unmatched = this.of('none', 'none')

  /** Several routes of one operation share its durations. */
  of(surface: string, operation: string): OperationDurations {
    const name = `${surface} ${operation}`
    const { durations } = this.#operations.get(name) ?? { durations: new OperationDurations() }
    this.#operations.set(name, { labels: { surface, operation }, durations })
    return durations
  }

  *read(): Iterable<readonly [Labels, DurationHistogram]> {
    for (const { labels, durations } of this.#operations.values())
      for (const [index, histogram] of durations.byStatusClass.entries())
        if (histogram) yield [{ ...labels, status_class: STATUS_CLASSES[index] as string }, histogram]
  }
}
