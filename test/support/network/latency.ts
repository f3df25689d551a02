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
const P99_ADDED_MAX_MS = 300
const BASELINE_MS = 500
/** Other processes can disturb a round, so most of the rounds count. */
const ROUNDS = 5
const UNDELAYED_ROUNDS = 3

const probe = fileURLToPath(new URL('./latency-probe.ts', import.meta.url))

/** Latency without load, by targets. Measured again after a round that fails. */
const baselines = new WeakMap<Target[], Latency>()

/**
 * `load` delays the responses of each target by less than 100 ms at the median and 300 ms at the 99th
 * percentile, in most of the rounds.
 */
export async function assertUndelayed(t: TestContext, targets: Target[], load: () => Promise<unknown>) {
  const rounds: string[] = []
  let undelayed = 0
  while (undelayed < UNDELAYED_ROUNDS) {
    const before = baselines.get(targets) ?? (await measureLatency(t, targets, () => sleep(BASELINE_MS)))
    baselines.set(targets, before)
    const during = await measureLatency(t, targets, load)
    rounds.push(`before the load: ${describeLatency(before)}; during it: ${describeLatency(during)}`)
    t.diagnostic(rounds.at(-1) as string)
    const isUndelayed =
      during.median < before.median + MEDIAN_ADDED_MAX_MS && during.p99 < before.p99 + P99_ADDED_MAX_MS
    if (isUndelayed) undelayed += 1
    else baselines.delete(targets)
    assert.ok(rounds.length - undelayed <= ROUNDS - UNDELAYED_ROUNDS, rounds.join('\n'))
  }
}

type Latency = Awaited<ReturnType<typeof measureLatency>>

/** Latency of requests to the targets while `load` runs. */
export async function measureLatency(t: TestContext, targets: Target[], load: () => Promise<unknown>) {
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
    median: percentile(durations, 0.5),
    p99: percentile(durations, 0.99),
  }
}

/** The 99th of up to 100 is the largest. */
const percentile = (sorted: number[], share: number) =>
  Math.round(sorted[Math.floor(sorted.length * share)] as number)

export const describeLatency = ({ count, median, p99 }: Latency) =>
  `${count} requests, median ${median} ms, p99 ${p99} ms`
