// The delay after which a verifier knows a change.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { provision } from '../../src/server/domain/workspaces/manage.ts'
import { addWorkspace, operator } from '../support/api/server.ts'
import { until } from '../support/until.ts'
import { setUpVerifier, warm } from './verifier.ts'

test('a workspace that is provisioned after its key was cached is provisioned within a second', async (t) => {
  const { server, counted, requested, start } = await setUpVerifier(t)
  const verifier = start(counted)
  const { key } = await addWorkspace(server, 'beta')
  await warm(verifier, key.token, requested)
  await provision(server.services, operator, 'beta')
  const isProvisioned = async () => {
    const result = await verifier.verify(key.token)
    return result.valid && result.workspace.provisioned
  }
  await until('it is provisioned', isProvisioned, 1_000)
  const before = requested.length
  await isProvisioned()
  assert.equal(requested.length, before, 'the new result is cached')
})
