// The same scenarios for minutes instead of seconds (npm run test:faults). FAULTS_SECONDS sets the length of
// each.
import { test } from 'node:test'
import { engines } from '../support/databases/create.ts'
import type { Attempt, InjectedFault } from './checker/history.ts'
import { deployOnPostgres, deployOnSqlite } from './deployments.ts'
import { assertFollowers, assertNoTraffic, assertNoViolations } from './run.ts'
import { assertDeliveries } from './scenario/webhooks.ts'

const SECONDS = Number(process.env.FAULTS_SECONDS || 240)

const startedAt = performance.now()
function printProgress(attempts: readonly Attempt[], injected: readonly InjectedFault[]): void {
  const seconds = Math.round((performance.now() - startedAt) / 1_000)
  const unavailable = attempts.filter(({ response }) => response?.status === 503).length
  process.stdout.write(
    `${seconds} s: ${attempts.length} operations, ${unavailable} with 503, ${injected.length} faults\n`,
  )
}

test('long run on PostgreSQL without violations', async (t) => {
  await assertNoViolations(t, await deployOnPostgres(t, 3), { seconds: SECONDS, onProgress: printProgress })
})

test('long run on PostgreSQL with two workers per node without violations', async (t) => {
  const deployment = await deployOnPostgres(t, 2, { ADIT_WORKERS: '2' })
  await assertNoViolations(t, deployment, { seconds: SECONDS, onProgress: printProgress })
})

test('long run on SQLite without violations', async (t) => {
  await assertNoViolations(t, await deployOnSqlite(t), { seconds: SECONDS, onProgress: printProgress })
})

test('long run of tunnels on PostgreSQL without violations', async (t) => {
  await assertNoTraffic(t, await deployOnPostgres(t, 2), { seconds: SECONDS })
})

test('long run with a hundred followers without violations', (t) =>
  assertFollowers(t, { followers: 100, seconds: SECONDS }))

for (const engine of engines)
  test(`long run of webhooks on ${engine}`, async (t) => {
    const kills = Math.ceil(SECONDS / 40)
    const { events, requests } = await assertDeliveries(t, { engine, kills, keysPerKill: 40, isLong: true })
    process.stdout.write(`${events} events, ${requests.join(', ')} requests, ${kills} nodes killed\n`)
  })
