// A history in a few lines, for people.
import { type History, isAcknowledged, type Violation } from './history.ts'

export function summarize({ attempts, troubles, listed, usage }: History, violations: Violation[]): string[] {
  const took = attempts
    .filter((attempt) => attempt.revokes !== undefined && isAcknowledged(attempt))
    .map(({ startMs, endMs }) => Math.round(endMs - startMs))
    .sort((a, b) => a - b)
  const answered = (status: number) => attempts.filter(({ answer }) => answer?.status === status).length
  return [
    `${attempts.length} operations: ${counts(attempts.map(({ kind }) => kind))}`,
    `${troubles.length} troubles: ${counts(troubles.map(({ kind }) => kind))}`,
    `${attempts.filter(({ answer }) => !answer).length} without an answer, ${answered(503)} answered with 503`,
    `${took.length} revocations acknowledged, in ${took[took.length >> 1]} ms at the median and ${took.at(-1)} ms at most`,
    `${listed.length} keys, ${usage.told.bytes} bytes and ${usage.told.events} events at the end`,
    `${violations.filter(({ rule }) => rule === 'stale accept').length} stale accepts, ${violations.length} violations in all`,
  ]
}

const counts = (words: string[]): string =>
  [...Map.groupBy(words, (word) => word)]
    .map(([word, all]) => `${all.length} ${word}`)
    .sort((a, b) => Number.parseInt(b, 10) - Number.parseInt(a, 10))
    .join(', ')
