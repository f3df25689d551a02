import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'

/** Only a test that fails waits for so long. Pass a shorter time where a guarantee is one. */
const TIMEOUT_MS = 30_000

/** Waits for a condition, and returns how many milliseconds it took. */
export async function until(what: string, holds: () => unknown, ms = TIMEOUT_MS): Promise<number> {
  const began = performance.now()
  while (!(await holds())) {
    assert.ok(performance.now() - began < ms, `not within ${ms} ms: ${what}`)
    await sleep(5)
  }
  return performance.now() - began
}
