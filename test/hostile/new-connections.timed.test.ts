// Several nodes on PostgreSQL while one of them is attacked with connections.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { populate } from '../support/api/clients.ts'
import { caller } from '../support/api/server.ts'
import { createMigratedDatabase } from '../support/databases/create.ts'
import { assertAdmitted } from '../support/network/new-connections.ts'
import { startServing } from '../support/processes/process.ts'

test('a node attacked with connections responds within 300 ms, and rejects what another node revoked', async (t) => {
  const database = await createMigratedDatabase(t, 'postgres')
  const { key } = await populate(database)
  const env = { ADIT_DATABASE_URL: database, ADIT_LOG_LEVEL: 'warn' }
  const [attacked, other] = [await startServing(t, env), await startServing(t, env)]
  const request = `GET /api/v1/workspace HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`
  await assertAdmitted(t, { port: Number(new URL(attacked.url).port), request })
  // The attack goes on until the end of the test.
  const created = (await caller(other.api, key)('POST', '/tokens')).json
  const use = async () => (await caller(attacked.api, created.token)('GET', '/workspace')).status
  assert.equal(await use(), 200)
  assert.equal((await caller(other.api, key)('DELETE', `/tokens/${created.id}`)).status, 200)
  assert.equal(await use(), 401)
})
