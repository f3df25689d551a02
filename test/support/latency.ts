// Asserts that other requests are not held up while a server is under a load.
import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { atEnd } from './cleanup.ts'

export interface Target {
  url: string
  key?: string
}

const MEDIAN_MAX_MS = 100
const MAX_MS = 300
/** Other work on the machine can spoil a round; a server that blocks spoils every one. */
const ROUNDS = 5

const probe = fileURLToPath(new URL('./latency-probe.ts', import.meta.url))

/** While `load` runs, each target responds within 100 ms at the median and 300 ms at the most. */
export async function assertUndelayed(t: TestContext, targets: Target[], load: () => Promise<unknown>) {
  for (let round = 1; ; round++) {
    const { median, max, count } = await measure(t, targets, load)
    t.diagnostic(`${count} requests during the load: median ${median} ms, max ${max} ms`)
    if (median < MEDIAN_MAX_MS && max < MAX_MS) return
    assert.ok(round < ROUNDS, `other requests took ${median} ms at the median and ${max} ms at the most`)
  }
}

async function measure(t: TestContext, targets: Target[], load: () => Promise<unknown>) {
  const child = fork(probe, [JSON.stringify(targets)], { execArgv: [] })
  atEnd(t, () => void child.kill('SIGKILL'))
  await once(child, 'message')
  await load()
  child.send('stop')
  const [durations] = (await once(child, 'message')) as [number[]]
  durations.sort((a, b) => a - b)
  assert.ok(durations.length > 0)
  return {
    count: durations.length,
    median: Math.round(durations[durations.length >> 1] as number),
    max: Math.round(durations.at(-1) as number),
  }
}
