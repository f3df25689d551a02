import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'

/** Waits for a condition, and returns how many milliseconds it took. */
export async function until(what: string, holds: () => unknown, ms = 5_000): Promise<number> {
  const began = performance.now()
  while (!(await holds())) {
    assert.ok(performance.now() - began < ms, `not within ${ms} ms: ${what}`)
    await sleep(5)
  }
  return performance.now() - began
}
