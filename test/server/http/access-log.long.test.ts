import assert from 'node:assert/strict'
import { test } from 'node:test'
import { caller } from '../../support/api/server.ts'
import { createMigratedDatabase } from '../../support/databases/create.ts'
import { startServing } from '../../support/processes/process.ts'

test('the summary is written once a minute while the server runs', async (t) => {
  const env = { ADIT_DATABASE_URL: await createMigratedDatabase(t, 'sqlite') }
  const running = await startServing(t, env)
  const call = caller(running.api, running.token as string)
  for (let turn = 0; turn < 3; turn++) assert.equal((await call('GET', '/workspace')).status, 200)
  const written = running.waitFor(/"requests":3/, 'stderr')
  await assert.doesNotReject(written)
})
