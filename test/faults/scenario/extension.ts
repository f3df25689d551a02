// A run without revocations or faults proves nothing. On a busy machine it takes longer until there are
// enough.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Attempt, isAcknowledged } from '../checker/history.ts'

const EXTENSION_MAX_MS = 60_000

export const countRevocations = (attempts: readonly Attempt[]): number =>
  attempts.filter((attempt) => attempt.revokes && isAcknowledged(attempt)).length

export const hasEnoughRevocations = (attempts: readonly Attempt[], seconds: number): boolean =>
  countRevocations(attempts) >= seconds / 4

/** Whether a workspace was archived and restored. */
export const hasRestored = (attempts: readonly Attempt[]): boolean =>
  attempts.some((attempt) => attempt.kind === 'operator.restore' && isAcknowledged(attempt))

/** Returns when enough has happened, or after a minute; the caller then asserts what is missing. */
export async function extendUntil(hasEnough: () => boolean): Promise<void> {
  const endsAt = performance.now() + EXTENSION_MAX_MS
  while (!hasEnough() && performance.now() < endsAt) await sleep(100)
}
