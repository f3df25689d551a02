// New connections to the control plane.
import { test } from 'node:test'
import { createMigratedDatabase } from '../support/databases/create.ts'
import { assertAdmitted } from '../support/network/new-connections.ts'
import { startServing } from '../support/processes/process.ts'

const UNAUTHORIZED = 'GET /api/v1/workspace HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\n\r\n'

test('new connections get a response within 300 ms while others send requests and open connections without pause', async (t) => {
  const env = { ADIT_DATABASE_URL: await createMigratedDatabase(t, 'sqlite'), ADIT_LOG_LEVEL: 'warn' }
  const { url } = await startServing(t, env)
  await assertAdmitted(t, { port: Number(new URL(url).port), request: UNAUTHORIZED })
})

test('new connections to several workers get a response within 300 ms during such load', async (t) => {
  const env = {
    ADIT_DATABASE_URL: await createMigratedDatabase(t, 'sqlite'),
    ADIT_WORKERS: '2',
    ADIT_LOG_LEVEL: 'info',
  }
  const { url, waitFor } = await startServing(t, env)
  await waitFor(/"worker listening"/, 'stderr')
  await assertAdmitted(t, { port: Number(new URL(url).port), request: UNAUTHORIZED })
})
