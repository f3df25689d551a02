// Asserts that new connections get in while a listener is under attack.
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { atEnd } from './cleanup.ts'

export interface Target {
  port: number
  /** Sent on every connection. */
  request: string
}

/** At the 99th percentile. */
const ADMITTED_MAX_MS = 300
/** Other processes can disturb a round; a server that starves new connections fails every round. */
const ROUNDS = 8

const scripts = {
  attack: fileURLToPath(new URL('connection-attack.ts', import.meta.url)),
  probe: fileURLToPath(new URL('connection-probe.ts', import.meta.url)),
}

/**
 * Clients keep the attacked target busy on connections that stay open, and others connect and leave. New
 * connections to the probed target get their first response in time nevertheless.
 */
export async function assertAdmitted(t: TestContext, attacked: Target, probed = attacked): Promise<void> {
  const attack = await start(t, scripts.attack, attacked)
  for (let round = 1; ; round++) {
    const probe = fork(scripts.probe, [JSON.stringify(probed)], { execArgv: [] })
    atEnd(t, () => void probe.kill('SIGKILL'))
    const [durations] = (await once(probe, 'message')) as [number[]]
    durations.sort((a, b) => a - b)
    const percentile = (share: number) =>
      Math.round(durations[Math.floor(durations.length * share)] as number)
    const measured = `${durations.length} connections: median ${percentile(0.5)} ms, p99 ${percentile(0.99)} ms`
    t.diagnostic(measured)
    if (percentile(0.99) < ADMITTED_MAX_MS) break
    assert.ok(round < ROUNDS, measured)
  }
  assert.equal(attack.exitCode, null)
}

/** The script, once it has begun and the server has compiled what it runs. */
async function start(t: TestContext, script: string, target: Target): Promise<ChildProcess> {
  const child = fork(script, [JSON.stringify(target)], { execArgv: [] })
  atEnd(t, () => void child.kill('SIGKILL'))
  await once(child, 'message')
  return child
}
