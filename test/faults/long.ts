// The same scenarios for minutes instead of seconds: npm run test:faults. FAULTS_SECONDS says how long each of them takes.
import { test } from 'node:test'
import { deployOnPostgres, deployOnSqlite } from './deployments.ts'
import type { Attempt, Trouble } from './history.ts'
import { assertSound } from './run.ts'

const SECONDS = Number(process.env.FAULTS_SECONDS || 240)

const began = performance.now()
function tellProgress(attempts: readonly Attempt[], troubles: readonly Trouble[]): void {
  const seconds = Math.round((performance.now() - began) / 1_000)
  const unavailable = attempts.filter(({ answer }) => answer?.status === 503).length
  process.stdout.write(
    `${seconds} s: ${attempts.length} operations, ${unavailable} times 503, ${troubles.length} troubles\n`,
  )
}

test('PostgreSQL, at length', async (t) => {
  await assertSound(t, await deployOnPostgres(t, 3), { seconds: SECONDS, onProgress: tellProgress })
})

test('SQLite, at length', async (t) => {
  await assertSound(t, await deployOnSqlite(t, 2), { seconds: SECONDS, onProgress: tellProgress })
})
