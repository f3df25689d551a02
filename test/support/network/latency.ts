// Asserts that a load does not delay other requests.
import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { atEnd } from '../cleanup.ts'

export interface Target {
  url: string
  key?: string
  method?: 'GET' | 'POST'
}

/** Allowed increase over the latency without the load. */
const MEDIAN_ADDED_MAX_MS = 100
const ADDED_MAX_MS = 300
const BASELINE_MS = 500
/** Other processes can disturb a round; a server that blocks fails every round. */
const ROUNDS = 15

const probe = fileURLToPath(new URL('./latency-probe.ts', import.meta.url))

/** Latency without load, by targets. Measured again for each round that fails. */
const baselines = new WeakMap<Target[], Latency>()

/** `load` delays the responses of each target by less than 100 ms at the median and 300 ms at the most. */
export async function assertUndelayed(t: TestContext, targets: Target[], load: () => Promise<unknown>) {
  for (let round = 1; ; round++) {
    const before = baselines.get(targets) ?? (await measure(t, targets, () => sleep(BASELINE_MS)))
    baselines.set(targets, before)
    const during = await measure(t, targets, load)
    const taken = ({ median, max }: Latency) => `median ${median} ms, max ${max} ms`
    t.diagnostic(`before the load: ${taken(before)}; ${during.count} requests during it: ${taken(during)}`)
    const isUndelayed =
      during.median < before.median + MEDIAN_ADDED_MAX_MS && during.max < before.max + ADDED_MAX_MS
    if (isUndelayed) return
    baselines.delete(targets)
    assert.ok(round < ROUNDS, `before the load: ${taken(before)}; during it: ${taken(during)}`)
  }
}

type Latency = Awaited<ReturnType<typeof measure>>

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
