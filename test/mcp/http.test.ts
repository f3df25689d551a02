// /mcp over HTTP: authentication, and requests that violate the protocol.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { revoke } from '../../src/server/domain/keys/lifecycle.ts'
import { addWorkspace, serve, serveWithEdge, type TestServer } from '../support/api/server.ts'
import { createFolder, engines } from '../support/databases/create.ts'
import { startServing } from '../support/processes/process.ts'
import { callMessage, connectAgent, postMessage } from './agent.ts'

const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
const apiAccess = (server: TestServer) => ({ url: server.url, apiKey: server.key.token })
/** For tests that leave its key alone. */
const shared = await serve({ after }, { engine: 'sqlite' })
const access = apiAccess(shared)

for (const engine of engines)
  test(`${engine}: without a valid API key every request is 401, whatever is sent`, async (t) => {
    const { server, edge } = await serveWithEdge(t, { engine })
    const { ctx } = server
    const { id, token: revoked } = (await server.post('/tokens', {})).json
    await revoke(ctx, id)
    const challenge = `Bearer resource_metadata="${server.url}/.well-known/oauth-protected-resource/mcp"`
    for (const credential of [`Bearer ${revoked}`, `Bearer ${edge.token}`, 'Bearer adit_x', 'Basic YTpi', ''])
      for (const body of [JSON.stringify(list), '{', 'x'.repeat(20_000)])
        for (const method of ['POST', 'GET', 'DELETE']) {
          const response = await fetch(`${server.url}/mcp`, {
            method,
            headers: { authorization: credential, 'content-type': 'application/json' },
            ...(method === 'POST' && { body }),
          })
          assert.equal(response.status, 401)
          assert.equal(response.headers.get('www-authenticate'), challenge)
          const json = (await response.json()) as { error: string }
          assert.equal(json.error, 'unauthorized')
        }
  })

test('a key that is revoked during the session is rejected', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const agent = await connectAgent(t, 'http', apiAccess(server))
  assert.equal((await agent.call('revoke_api_key', { id: server.key.id })).failed, false)
  await assert.rejects(agent.call('get_workspace'), /revoked/)
})

test('an agent sees only the workspace of its key', async (t) => {
  const other = await addWorkspace(shared, 'other')
  const agent = await connectAgent(t, 'http', { url: shared.url, apiKey: other.key.token })
  assert.equal((await agent.call('get_workspace')).data.slug, 'other')
  assert.match((await agent.call('revoke_api_key', { id: shared.key.id })).text, /^not_found/)
  assert.equal((await shared.call('GET', '/workspace')).status, 200)
})

test('there are no sessions: no session id is returned, and any request can be the first', async () => {
  const response = await postMessage(access, callMessage(7, 'get_workspace'))
  assert.equal(response.status, 200)
  assert.equal(response.headers.get('mcp-session-id'), null)
  assert.match(response.headers.get('content-type') ?? '', /^application\/json/)
  assert.equal(response.headers.get('cache-control'), 'no-store')
  const { id, result } = (await response.json()) as { id: number; result: { structuredContent: object } }
  assert.equal(id, 7)
  assert.deepEqual(Object.keys(result.structuredContent), ['slug', 'name', 'provisioned', 'tunnelBase'])
})

test('GET and DELETE are 405, after authentication', async () => {
  for (const method of ['GET', 'DELETE']) {
    const response = await fetch(`${shared.url}/mcp`, {
      method,
      headers: { authorization: `Bearer ${shared.key.token}`, accept: 'text/event-stream' },
    })
    assert.equal(response.status, 405)
    assert.equal(response.headers.get('allow'), 'POST')
    const { error } = (await response.json()) as { error: { code: number } }
    assert.equal(error.code, -32000)
  }
})

test('malformed messages are rejected, never an internal error', async () => {
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
    [JSON.stringify(list), 406, { accept: 'text/html' }],
    [JSON.stringify(list), 400, { 'mcp-protocol-version': '1999-01-01' }],
    [JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }), 202],
    ['[]', 400],
  ]
  for (const [body, status, headers] of messages) {
    const response = await postMessage(access, body, headers)
    assert.equal(response.status, status, body.slice(0, 80))
    const text = await response.text()
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

test('every request of a batch gets a response, even if the batch cancels it', async () => {
  const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 2 } }
  const batch = [list, callMessage(2, 'get_workspace'), callMessage(3, 'no_such'), cancel]
  const response = await postMessage(access, batch)
  const results = (await response.json()) as { id: number; result?: object; error?: object }[]
  assert.deepEqual(
    results.map(({ id, error }) => [id, error !== undefined]),
    [
      [1, false],
      [2, false],
      [3, true],
    ],
  )
})

test('other origins cannot read the responses', async () => {
  const response = await postMessage(access, list, { origin: 'https://elsewhere.example' })
  assert.equal(response.headers.get('access-control-allow-origin'), null)
  const preflight = await fetch(`${shared.url}/mcp`, {
    method: 'OPTIONS',
    headers: { origin: 'https://elsewhere.example', 'access-control-request-method': 'POST' },
  })
  assert.equal(preflight.headers.get('access-control-allow-origin'), null)
})

test('the access log has the MCP request and its API request, with the same request id and key', async (t) => {
  const {
    url,
    token = '',
    waitFor,
  } = await startServing(t, {
    ADIT_DATABASE_URL: `sqlite:${createFolder(t)}/adit.db`,
    ADIT_ACCESS_LOG: 'all',
  })
  const response = await postMessage({ url, apiKey: token }, callMessage(1, 'create_api_key'), {
    'x-request-id': 'request-1',
  })
  assert.equal(response.headers.get('x-request-id'), 'request-1')
  const [text] = await waitFor(/^(?:.*\n)*.*"request-1".*"\/mcp".*$/m, 'stderr')
  const lines = text
    .split('\n')
    .filter((line) => line.includes('"request-1"'))
    .map((line) => JSON.parse(line))
  assert.deepEqual(
    lines.map(({ route, status, clientIp }) => ({ route, status, clientIp })),
    [
      { route: '/api/v1/tokens', status: 201, clientIp: '127.0.0.1' },
      { route: '/mcp', status: 200, clientIp: '127.0.0.1' },
    ],
  )
  assert.equal(lines[0]?.callerId, lines[1]?.callerId)
  assert.match(String(lines[0]?.callerId), /^tok_/)
})
