// Asserts that new connections get in while a listener is under attack.
import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { atEnd } from '../cleanup.ts'

export interface Target {
  port: number
  /** Sent on every connection. */
  request: string
}

/** The limit of the 99th percentile. */
const ADMITTED_MAX_MS = 300
/** Other processes can disturb a round, so most of the rounds count. */
const ROUNDS = 5
const ROUNDS_IN_TIME = 3

const scripts = {
  attack: fileURLToPath(new URL('connection-attack.ts', import.meta.url)),
  probe: fileURLToPath(new URL('connection-probe.ts', import.meta.url)),
}

/**
 * Clients keep the attacked target busy on connections that stay open, and others connect and leave. New
 * connections to the probed target get their first response in time nevertheless.
 */
export async function assertAdmitted(t: TestContext, attacked: Target, probed = attacked): Promise<void> {
  const { child: attack } = await start(t, scripts.attack, attacked)
  const rounds: string[] = []
  let inTime = 0
  while (rounds.length < ROUNDS && inTime < ROUNDS_IN_TIME) {
    const { measured, p99 } = await probe(t, probed)
    rounds.push(measured)
    if (p99 < ADMITTED_MAX_MS) inTime += 1
  }
  t.diagnostic(rounds.join('; '))
  assert.ok(inTime >= ROUNDS_IN_TIME, rounds.join('; '))
  assert.equal(attack.exitCode, null)
}

async function probe(t: TestContext, target: Target) {
  const durations = (await start(t, scripts.probe, target)).message as number[]
  durations.sort((a, b) => a - b)
  const percentile = (share: number) => Math.round(durations[Math.floor(durations.length * share)] as number)
  const [median, p99] = [percentile(0.5), percentile(0.99)]
  return { measured: `${durations.length} connections: median ${median} ms, p99 ${p99} ms`, p99 }
}

/** Runs a script until it sends its first message. */
async function start(t: TestContext, script: string, target: Target) {
  const child = fork(script, [JSON.stringify(target)], { execArgv: [] })
  atEnd(t, () => void child.kill('SIGKILL'))
  const [message] = await once(child, 'message')
  return { child, message }
}
