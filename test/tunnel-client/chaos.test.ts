// Random aborts and resets, and a tunnel client that is killed, under many simultaneous requests.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startStandaloneEdge } from '../support/edges/standalone-edge.ts'
import { startHttp } from '../support/edges/tunneled.ts'
import { fetchHost, startTunnel } from '../support/edges/tunnels.ts'
import { errorsIn } from '../support/network/broken-connections.ts'
import { createRandom } from '../support/random.ts'
import { until } from '../support/until.ts'
import { answer, createAgent, exchange, mustComplete, planExchange, type Target } from './chaos-plan.ts'

/** `npm run test:chaos` has more. */
const REQUESTS = Number(process.env.CHAOS_REQUESTS ?? 1_000)
const SEED = process.env.CHAOS_SEED ?? String(Date.now())
const CONCURRENCY = 95
/** The tunnel client is killed each time that this many requests have begun. */
const KILL_AFTER = 600

/**
 * Runs exchanges concurrently. `kill` is called after each; while it kills and restarts the tunnel client, no
 * other exchange begins, and those in progress may fail.
 */
async function runExchanges(target: Target, kill: (done: number) => Promise<void> | undefined) {
  const counts = { complete: 0, failed: 0, aborted: 0 }
  const lost: string[] = []
  let next = 0
  let kills = 0
  let restart: Promise<void> | undefined
  const work = async (_: unknown, worker: number) => {
    const random = createRandom(`${SEED}/${worker}`)
    const agent = createAgent()
    while (next < REQUESTS) {
      await restart
      const plan = planExchange(random, `${SEED}-${next++}`)
      const killsBefore = kills
      const outcome = await exchange(target, agent, plan)
      counts[outcome] += 1
      if (mustComplete(plan) && outcome !== 'complete' && kills === killsBefore)
        lost.push(JSON.stringify(plan))
      const killing = kill(next)
      if (killing) {
        kills += 1
        restart = killing
      }
    }
    agent.destroy()
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, work))
  await restart
  return { counts, lost }
}

test('under random aborts, resets and kills of the tunnel client, every response reaches its own request, and undisturbed requests complete', async (t) => {
  const violations: string[] = []
  const local = await startHttp(
    t,
    answer((text) => violations.push(text)),
  )
  const { edge, keys } = await startStandaloneEdge(t, ['acme'])
  const start = () => startTunnel(t, { edge, key: keys[0] as string, port: local.port, name: 'app' })
  const target = { port: edge.port, host: 'app.acme.tunnels.test' }
  const isOpen = async () => (await fetchHost(edge, target.host, { path: '/x/respond/1' })).status === 200

  let client = start()
  await until('the tunnel is open', isOpen)
  async function killAndRestart(): Promise<void> {
    client.child.kill('SIGKILL')
    await client.ended
    client = start()
    // The name is free when the edge has noticed that the connection is closed.
    await until('the tunnel is open again', async () => {
      if (client.child.exitCode !== null) client = start()
      return isOpen()
    })
  }
  let nextKill = KILL_AFTER
  const { counts, lost } = await runExchanges(target, (done) => {
    if (done < nextKill) return undefined
    nextKill += KILL_AFTER
    return killAndRestart()
  })

  t.diagnostic(`seed ${SEED}: ${JSON.stringify(counts)}`)
  assert.deepEqual([violations, lost], [[], []], `CHAOS_SEED=${SEED}`)
  for (const [outcome, count] of Object.entries(counts)) assert.ok(count > 0, outcome)
  edge.child.kill('SIGTERM')
  assert.deepEqual(errorsIn((await edge.ended).stderr), [])
})
