import type { Outcome } from './jobs.ts'

/** Latencies are in milliseconds. */
export function outcomeOf(latencies: number[], seconds: number): Outcome {
  latencies.sort((a, b) => a - b)
  const at = (part: number) => latencies[Math.floor(latencies.length * part)] ?? Number.NaN
  const completed = latencies.length
  return { completed, seconds, perSecond: completed / seconds, p50: at(0.5), p99: at(0.99) }
}
