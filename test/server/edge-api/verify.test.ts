import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSecret } from '../../../src/lib/credentials/secret.ts'
import { createTopics } from '../../../src/server/verification/topics.ts'
import { serveWithEdge } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { SECRET } from '../../support/databases/migrated-databases.ts'
import { until } from '../../support/until.ts'

const createTopic = createTopics(SECRET)

for (const engine of engines) {
  test(`${engine}: a valid key is returned with its workspace, in both variants`, async (t) => {
    for (const variant of ['A', 'B']) {
      const env = { ADIT_TUNNEL_DOMAIN: 'tunnels.example.com', ADIT_API_VARIANT: variant }
      const { server, edge } = await serveWithEdge(t, { engine, env })
      assert.deepEqual((await edge.verify(server.key.token)).json, {
        valid: true,
        keyId: server.key.id,
        workspace: {
          slug: 'acme',
          name: 'Acme',
          provisioned: true,
          tunnelBase: 'acme.tunnels.example.com',
          topic: createTopic(server.workspace.id),
        },
      })
    }
  })

  test(`${engine}: an invalid key is a result with a reason, not an error`, async (t) => {
    const { server, edge } = await serveWithEdge(t, { engine })
    const revoked = (await server.post('/tokens', {})).json
    await server.call('DELETE', `/tokens/${revoked.id}`)
    const unknown = { valid: false, reason: 'unknown' }
    for (const key of [
      '',
      'adit_',
      'x'.repeat(200),
      '\u0000',
      createSecret('key', server.services.random),
      edge.token,
    ])
      assert.deepEqual((await edge.verify(key)).json, unknown, key)
    assert.deepEqual((await edge.verify(revoked.token)).json, { valid: false, reason: 'revoked' })
  })

  test(`${engine}: a verification counts as a use of the key`, async (t) => {
    const { server, edge } = await serveWithEdge(t, { engine })
    const { token } = (await server.post('/tokens', {})).json
    await edge.verify(token)
    await until(
      'its last use is shown',
      async () => (await server.call('GET', '/tokens')).json.tokens[0].lastUsedAt !== null,
      5_000,
    )
  })

  test(`${engine}: forward authentication gets 204 with the workspace and key, or 401`, async (t) => {
    const { server, edge } = await serveWithEdge(t, { engine })
    const authorize = (authorization?: string) =>
      edge.call('GET', '/authorize', {
        key: null,
        headers: { 'x-adit-edge': edge.token, ...(authorization && { authorization }) },
      })
    const accepted = await authorize(`Bearer ${server.key.token}`)
    assert.deepEqual([accepted.status, accepted.text], [204, ''])
    assert.equal(accepted.headers.get('x-adit-workspace'), 'acme')
    assert.equal(accepted.headers.get('x-adit-key-id'), server.key.id)
    await server.call('DELETE', `/tokens/${server.key.id}`)
    for (const authorization of [
      `Bearer ${server.key.token}`,
      undefined,
      'Basic x',
      `Bearer ${edge.token}`,
    ]) {
      const rejected = await authorize(authorization)
      assert.equal(rejected.status, 401)
      assert.equal(rejected.headers.get('www-authenticate'), 'Bearer')
      assert.equal(rejected.headers.get('x-adit-workspace'), null)
    }
  })
}
