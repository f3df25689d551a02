// The key of an agent is valid at /mcp only, and ends like any other.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { signInAgent } from '../../support/accounts/agents.ts'
import { addMember, serveWithOwner } from '../../support/accounts/users.ts'
import { addEdge, addNode, caller } from '../../support/api/server.ts'
import { createMigratedDatabase, engines } from '../../support/databases/create.ts'
import { readRows } from '../../support/databases/rows.ts'
import { startServing } from '../../support/processes/process.ts'
import { callMessage, connectAgent, hello, postMessage } from '../agent.ts'

const deployments = await Promise.all(engines.map((engine) => serveWithOwner({ after }, { engine })))

for (const [index, engine] of engines.entries()) {
  const { server, ann } = deployments[index] as (typeof deployments)[number]
  const { url } = server

  test(`${engine}: the key of an agent is rejected everywhere but at /mcp, also while it is in the cache`, async (t) => {
    const { token } = await signInAgent(url, ann, { managesKeys: true })
    const agent = await connectAgent(t, 'http', { url, apiKey: token })
    await agent.call('get_workspace')
    // Responses of the workspace are in the cache.
    for (let turn = 0; turn < 3; turn++) assert.equal((await server.call('GET', '/workspace')).status, 200)
    const edge = await addEdge(server, `fra-${engine}`)
    const rejected = {
      'the public API': await server.call('GET', '/workspace', { key: token }),
      'its list of keys': await server.call('GET', '/tokens', { key: token }),
      'a new key': await server.call('POST', '/tokens', { key: token, json: {} }),
      'the workspace API': await caller(`${url}/workspace/v1`, token)('GET', '/tunnels'),
      'what tunnel clients ask for': await caller(`${url}/workspace/v1`, token)('GET', '/edge'),
      'the edge API': await caller(`${url}/edge/v1`, token)('POST', '/keys/verify', { json: { key: token } }),
      'the dashboard': await caller(`${url}/dashboard/api`, token)('GET', '/session'),
    }
    for (const [where, { status }] of Object.entries(rejected)) assert.equal(status, 401, where)
    assert.match(rejected['the public API'].json.message, /the key of an agent for \/mcp/)
    const { json } = await edge.verify(token)
    assert.equal(json.valid, false, 'an edge that a tunnel client presents it to')
    assert.equal((await agent.call('get_workspace')).data.slug, 'acme')
  })

  test(`${engine}: a revocation in the dashboard ends it on every node before it returns`, async (t) => {
    const urls = engine === 'postgres' ? [url, (await addNode(t, server)).url] : [url]
    const { token } = await signInAgent(url, ann, { name: 'revoked' })
    for (const each of urls)
      assert.equal((await postMessage({ url: each, apiKey: token }, hello)).status, 200)
    const [key] = await readRows(server.services, 'api_keys', { label: 'revoked' })
    assert.equal((await ann.remove(`/workspaces/acme/keys/${key?.id}`)).status, 200)
    for (const each of urls) {
      const response = await postMessage({ url: each, apiKey: token }, hello)
      assert.equal(response.status, 401)
      assert.match(response.headers.get('www-authenticate') ?? '', /resource_metadata="http.*\/mcp"/)
    }
  })

  test(`${engine}: it ends with the membership of its user, and with itself`, async (t) => {
    const mia = await addMember(server, 'Mia', 'member')
    const { token } = await signInAgent(url, mia)
    assert.equal((await postMessage({ url, apiKey: token }, hello)).status, 200)
    assert.equal((await ann.remove(`/workspaces/acme/members/${mia.id}`)).status, 200)
    assert.equal((await postMessage({ url, apiKey: token }, hello)).status, 401)

    const own = await signInAgent(url, ann, { name: 'itself' })
    const agent = await connectAgent(t, 'http', { url, apiKey: own.token })
    const [key] = await readRows(server.services, 'api_keys', { label: 'itself' })
    await agent.call('revoke_api_key', { id: key?.id as string })
    assert.equal((await postMessage({ url, apiKey: own.token }, hello)).status, 401)
  })

  test(`${engine}: it cannot be rotated, which would return a key that is valid everywhere`, async () => {
    await signInAgent(url, ann, { name: 'rotated' })
    const [key] = await readRows(server.services, 'api_keys', { label: 'rotated' })
    const response = await ann.post(`/workspaces/acme/keys/${key?.id}/rotate`, { overlap: 'none' })
    assert.equal(response.status, 409)
    assert.match(response.json.message, /when it signs in again/)
  })
}

test('no header makes the API accept the key of an agent', async () => {
  const [{ server, ann }] = deployments as [(typeof deployments)[number]]
  const { token } = await signInAgent(server.url, ann)
  const headers = { 'mcp-protocol-version': '2025-06-18', 'mcp-method': 'tools/call', host: 'localhost' }
  assert.equal((await server.call('GET', '/workspace', { key: token, headers })).status, 401)
  const results = await Promise.all([
    postMessage({ url: server.url, apiKey: token }, callMessage(1, 'get_workspace')),
    server.call('GET', '/workspace', { key: token }),
  ])
  assert.deepEqual(
    results.map(({ status }) => status),
    [200, 401],
    'not at the same time either',
  )
})

test('neither a code nor a key is in the log', async (t) => {
  const env = {
    ADIT_DATABASE_URL: await createMigratedDatabase(t, 'sqlite'),
    ADIT_ACCESS_LOG: 'all',
    ADIT_LOG_LEVEL: 'debug',
  }
  const running = await startServing(t, env)
  const query = 'client_id=x&redirect_uri=https://secret.example.com&state=secret-state&code=secret-code'
  await fetch(`${running.url}/authorize?${query}`)
  await fetch(`${running.url}/oauth/token?${query}`, { method: 'POST', body: new URLSearchParams(query) })
  await fetch(`${running.url}/oauth/register?${query}`)
  await fetch(`${running.url}/mcp`, {
    method: 'POST',
    headers: { authorization: `Bearer adit_agent_${'x'.repeat(49)}` },
  })
  const { stderr } = await running.stop()
  assert.match(stderr, /"route":"\/authorize"/)
  for (const secret of ['secret', 'adit_agent_']) assert.ok(!stderr.includes(secret), secret)
})
