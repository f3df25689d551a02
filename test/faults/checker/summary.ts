// Summarizes a history.
import { type History, isAcknowledged, type Violation } from './history.ts'

export function summarize({ attempts, injected, listed, usage }: History, violations: Violation[]): string[] {
  const durations = attempts
    .filter((attempt) => attempt.revokes !== undefined && isAcknowledged(attempt))
    .map(({ startMs, endMs }) => Math.round(endMs - startMs))
    .sort((a, b) => a - b)
  const withStatus = (status: number) => attempts.filter(({ response }) => response?.status === status).length
  const median = durations[durations.length >> 1]
  const staleAccepts = violations.filter(({ rule }) => rule === 'stale accept').length
  return [
    `${attempts.length} operations: ${counts(attempts.map(({ kind }) => kind))}`,
    `${injected.length} faults: ${counts(injected.map(({ kind }) => kind))}`,
    `${attempts.filter(({ response }) => !response).length} without a response, ${withStatus(503)} with 503`,
    `${durations.length} revocations acknowledged in ${median} ms (median), ${durations.at(-1)} ms (max)`,
    `${listed.length} keys, ${usage.reported.bytes} bytes and ${usage.reported.events} events at the end`,
    `${staleAccepts} stale accepts, ${violations.length} violations in total`,
  ]
}

const counts = (values: string[]): string =>
  [...Map.groupBy(values, (value) => value)]
    .map(([value, all]) => `${all.length} ${value}`)
    .sort((a, b) => Number.parseInt(b, 10) - Number.parseInt(a, 10))
    .join(', ')
