// An agent manages API keys from start to end.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serve } from '../support/api/server.ts'
import { engines } from '../support/databases/create.ts'
import { pluck } from '../support/pluck.ts'
import { connectAgent, transports } from './agent.ts'

for (const engine of engines)
  for (const transport of transports)
    test(`${engine}, ${transport}: an agent reads the workspace, creates a key that works, and revokes it`, async (t) => {
      const server = await serve(t, { engine })
      const agent = await connectAgent(t, transport, { url: server.url, apiKey: server.key.token })

      const workspace = await agent.call('get_workspace')
      assert.equal(workspace.data.slug, 'acme')
      assert.match(workspace.text, /“Acme” \(acme\) is provisioned/)

      const created = await agent.call('create_api_key', { label: 'created by an agent' })
      assert.match(created.text, /shown only once/)
      const { id, token } = created.data
      assert.equal((await server.call('GET', '/workspace', { key: token })).status, 200)

      const listed = await agent.call('list_api_keys')
      assert.deepEqual(pluck(listed.data.tokens, 'label'), ['created by an agent', 'first'])
      assert.match(listed.text, /^API keys listed: 2, active: 2\./)

      const revoked = await agent.call('revoke_api_key', { id })
      assert.deepEqual(revoked.data, { id, revoked: true })
      assert.equal((await server.call('GET', '/workspace', { key: token })).status, 401)
      assert.match((await agent.call('list_api_keys')).text, /active: 1\./)

      const usage = await agent.call('get_usage', { days: 3 })
      assert.equal(usage.data.series.length, 3)
      assert.match(usage.text, /^0 bytes in both directions\. UTC days, including today: 3/)
    })

for (const transport of transports)
  test(`${transport}: no result contains a secret, except when a key is created`, async (t) => {
    const server = await serve(t, { engine: 'sqlite' })
    const agent = await connectAgent(t, transport, { url: server.url, apiKey: server.key.token })
    const secret = /adit_(?!…)[0-9A-Za-z]{8,}/
    const texts: string[] = []
    const note = async (name: string, args?: Record<string, unknown>) => {
      const { text, data } = await agent.call(name, args)
      texts.push(text, JSON.stringify(data))
      return data
    }
    const created = await agent.call('create_api_key', { label: 'quiet' })
    assert.match(created.text, secret)
    await note('get_workspace')
    await note('list_api_keys')
    await note('get_usage')
    await note('get_usage', { days: 0 })
    await note('revoke_api_key', { id: created.data.token })
    await note('revoke_api_key', { id: created.data.id })
    await note('revoke_api_key', { id: created.data.id })
    for (const text of texts) assert.doesNotMatch(text ?? '', secret)
    assert.doesNotMatch(JSON.stringify(await agent.client.listTools()), secret)
  })
