// The door at /mcp: who gets in, and what is said to those who do not speak the protocol.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { revoke } from '../../src/domain/keys.ts'
import { createFolder, engines } from '../support/databases.ts'
import { startServing } from '../support/process.ts'
import { addEdge, addWorkspace, operator, serve, type TestServer } from '../support/server.ts'
import { callMessage, connectAgent, postMessage } from './agent.ts'

const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
const accessOf = (server: TestServer) => ({ url: server.url, apiKey: server.key.token })

for (const engine of engines)
  test(`${engine}: without a good key of a workspace there is no way in, whatever is sent`, async (t) => {
    const server = await serve(t, { engine })
    const edge = await addEdge(server)
    const ctx = { ...server.services, actor: operator, workspaceId: server.workspace.id }
    const { id, token: revoked } = (await server.post('/tokens', {})).json
    await revoke(ctx, id)
    for (const credential of [`Bearer ${revoked}`, `Bearer ${edge.token}`, 'Bearer adit_x', 'Basic YTpi', ''])
      for (const body of [JSON.stringify(list), '{', 'x'.repeat(20_000)])
        for (const method of ['POST', 'GET', 'DELETE']) {
          const answer = await fetch(`${server.url}/mcp`, {
            method,
            headers: { authorization: credential, 'content-type': 'application/json' },
            ...(method === 'POST' && { body }),
          })
          assert.equal(answer.status, 401)
          assert.equal(answer.headers.get('www-authenticate'), 'Bearer')
          const said = (await answer.json()) as { error: string }
          assert.equal(said.error, 'unauthorized')
        }
  })

test('a key that was revoked midway no longer gets in', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const agent = await connectAgent(t, 'http', accessOf(server))
  assert.equal((await agent.call('revoke_api_key', { id: server.key.id })).failed, false)
  await assert.rejects(agent.call('get_workspace'), /revoked/)
})

test('an agent sees the workspace of its own key and no other', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const other = await addWorkspace(server, 'other')
  const agent = await connectAgent(t, 'http', { url: server.url, apiKey: other.key.token })
  assert.equal((await agent.call('get_workspace')).data.slug, 'other')
  assert.match((await agent.call('revoke_api_key', { id: server.key.id })).text, /^not_found/)
  assert.equal((await server.call('GET', '/workspace')).status, 200)
})

test('there are no sessions: no id is given out, and any request can be the first', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const answer = await postMessage(accessOf(server), callMessage(7, 'get_workspace'))
  assert.equal(answer.status, 200)
  assert.equal(answer.headers.get('mcp-session-id'), null)
  assert.match(answer.headers.get('content-type') ?? '', /^application\/json/)
  assert.equal(answer.headers.get('cache-control'), 'no-store')
  const { id, result } = (await answer.json()) as { id: number; result: { structuredContent: object } }
  assert.equal(id, 7)
  assert.deepEqual(Object.keys(result.structuredContent), ['slug', 'name', 'provisioned', 'tunnelBase'])
})

test('GET and DELETE are 405, after the key was looked at', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  for (const method of ['GET', 'DELETE']) {
    const answer = await fetch(`${server.url}/mcp`, {
      method,
      headers: { authorization: `Bearer ${server.key.token}`, accept: 'text/event-stream' },
    })
    assert.equal(answer.status, 405)
    assert.equal(answer.headers.get('allow'), 'POST')
    const { error } = (await answer.json()) as { error: { code: number } }
    assert.equal(error.code, -32000)
  }
})

test('what is no message of the protocol is refused as such, and never a failure of the server', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const access = accessOf(server)
  const messages: [body: string, status: number, headers?: Record<string, string>][] = [
    ['{', 400],
    ['', 400],
    ['null', 400],
    ['5', 400],
    ['{}', 400],
    ['{"jsonrpc":"2.0"}', 400],
    [`"${'x'.repeat(20_000)}"`, 400],
    [JSON.stringify([list, { jsonrpc: '1.0' }]), 400],
    [JSON.stringify(list), 415, { 'content-type': 'text/plain' }],
    [JSON.stringify(list), 406, { accept: 'application/json' }],
    [JSON.stringify(list), 400, { 'mcp-protocol-version': '1999-01-01' }],
    [JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }), 202],
    ['[]', 202],
  ]
  for (const [body, status, headers] of messages) {
    const answer = await postMessage(access, body, headers)
    assert.equal(answer.status, status, body.slice(0, 80))
    const text = await answer.text()
    if (status === 202) assert.equal(text, '')
    else assert.ok('error' in JSON.parse(text))
  }
  const unknown = await postMessage(access, { jsonrpc: '2.0', id: 1, method: 'no/such' })
  assert.deepEqual(await unknown.json(), {
    jsonrpc: '2.0',
    id: 1,
    error: { code: -32601, message: 'Method not found' },
  })
})

test('a batch is answered whole, be it that it cancels itself', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 2 } }
  const batch = [list, callMessage(2, 'get_workspace'), callMessage(3, 'no_such'), cancel]
  const answer = await postMessage(accessOf(server), batch)
  const results = (await answer.json()) as { id: number; result?: object; error?: object }[]
  assert.deepEqual(
    results.map(({ id, error }) => [id, error !== undefined]),
    [
      [1, false],
      [2, false],
      [3, true],
    ],
  )
})

test('no web page is let in on what is said there', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const answer = await postMessage(accessOf(server), list, { origin: 'https://elsewhere.example' })
  assert.equal(answer.headers.get('access-control-allow-origin'), null)
  const preflight = await fetch(`${server.url}/mcp`, {
    method: 'OPTIONS',
    headers: { origin: 'https://elsewhere.example', 'access-control-request-method': 'POST' },
  })
  assert.equal(preflight.headers.get('access-control-allow-origin'), null)
})

test('the log has a line for the message and one for what it led to, under one id and with the key’s', async (t) => {
  const {
    url,
    token = '',
    says,
  } = await startServing(t, {
    ADIT_DATABASE_URL: `sqlite:${createFolder(t)}/adit.db`,
  })
  const answer = await postMessage({ url, apiKey: token }, callMessage(1, 'create_api_key'), {
    'x-request-id': 'errand-1',
  })
  assert.equal(answer.headers.get('x-request-id'), 'errand-1')
  const [text] = await says(/^(?:.*\n)*.*"errand-1".*"\/mcp".*$/m, 'stderr')
  const lines = text
    .split('\n')
    .filter((line) => line.includes('"errand-1"'))
    .map((line) => JSON.parse(line))
  assert.deepEqual(
    lines.map(({ route, status, from }) => ({ route, status, from })),
    [
      { route: '/api/v1/tokens', status: 201, from: '127.0.0.1' },
      { route: '/mcp', status: 200, from: '127.0.0.1' },
    ],
  )
  assert.equal(lines[0]?.by, lines[1]?.by)
  assert.match(String(lines[0]?.by), /^tok_/)
})
