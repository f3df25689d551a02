// Every supported revision of the protocol, with the official client.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import {
  discoverOAuthProtectedResourceMetadata,
  SUPPORTED_PROTOCOL_VERSIONS,
} from '@modelcontextprotocol/client'
import { serve, type TestServer } from '../support/api/server.ts'
import { callMessage, connectAgent, exchangeLines, listToolNames, postMessage, transports } from './agent.ts'

const LATEST = '2026-07-28'
/** The first one of MCP is of 2024-11-05; the SDK knows a draft before it. */
const LEGACY = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']

const apiAccess = ({ url, key }: TestServer) => ({ url, apiKey: key.token })
const optionsFor = (revision: string) =>
  revision === LATEST
    ? { versionNegotiation: { mode: { pin: revision } } }
    : { supportedProtocolVersions: [revision] }

const server = await serve({ after }, { engine: 'sqlite' })
const access = apiAccess(server)

test('the revisions of these tests are those of the SDK', () => {
  assert.deepEqual(
    SUPPORTED_PROTOCOL_VERSIONS.filter((revision) => revision >= '2024-11-05'),
    LEGACY,
  )
})

for (const transport of transports)
  test(`${transport}: an agent of any revision lists tools, calls them and gets errors`, async (t) => {
    for (const revision of [LATEST, ...LEGACY]) {
      const agent = await connectAgent(t, transport, access, optionsFor(revision))
      assert.equal(agent.client.getNegotiatedProtocolVersion(), revision)
      assert.equal(agent.client.getServerVersion()?.name, 'adit')
      assert.match(agent.client.getInstructions() ?? '', /^Adit is the control plane/)
      assert.equal((await listToolNames(agent)).length, 10)
      assert.equal((await agent.call('get_workspace')).data.slug, 'acme')
      assert.match((await agent.call('revoke_api_key', { id: 'tok_none' })).text, /^not_found: /)
      await agent.client.close()
    }
  })

for (const transport of transports)
  test(`${transport}: an agent that negotiates gets the latest revision`, async (t) => {
    const agent = await connectAgent(t, transport, access)
    assert.equal(agent.client.getNegotiatedProtocolVersion(), LATEST)
  })

/**
 * A request of the latest revision: each one has the version and the client, and HTTP headers repeat parts.
 */
function modern(message: { method: string; params?: object }, revision = LATEST) {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': revision,
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const headers = { 'mcp-protocol-version': revision, 'mcp-method': message.method }
  return { body: { jsonrpc: '2.0', id: 1, ...message, params: { ...message.params, _meta } }, headers }
}

interface Response {
  error?: { code: number; message: string; data?: { supported: string[] } }
  result?: { isError?: boolean }
}

test('http: requests of the latest revision are checked, and get JSON without a session', async () => {
  const send = async ({ body, headers }: { body: unknown; headers: Record<string, string> }) => {
    const response = await postMessage(access, body, headers)
    assert.match(response.headers.get('content-type') ?? '', /^application\/json/)
    assert.equal(response.headers.get('mcp-session-id'), null)
    return { status: response.status, ...((await response.json()) as Response) }
  }
  const call = modern(callMessage(1, 'get_workspace'))
  const named = { ...call, headers: { ...call.headers, 'mcp-name': 'get_workspace' } }
  assert.equal((await send(named)).status, 200)

  const otherTool = await send({ ...named, headers: { ...named.headers, 'mcp-name': 'revoke_api_key' } })
  assert.equal(otherTool.status, 400, 'a proxy may route or authorize by the header')
  const future = await send(modern({ method: 'tools/list' }, '2099-01-01'))
  assert.deepEqual(
    [future.status, future.error?.code, future.error?.data?.supported],
    [400, -32022, [LATEST]],
  )
  const incomplete = await send({
    body: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    headers: { 'mcp-protocol-version': LATEST, 'mcp-method': 'tools/list' },
  })
  assert.equal(incomplete.status, 400)
})

test('http: malformed requests of the latest revision are rejected, never an internal error', async () => {
  const { body, headers } = modern({ method: 'tools/list' })
  const messages: [body: unknown, status: number, code: number, headers?: Record<string, string>][] = [
    [[body], 400, -32600],
    [{ ...body, id: null }, 400, -32600],
    [{ ...body, params: { _meta: 5 } }, 400, -32600],
    [{ ...body, params: { _meta: {} } }, 400, -32602],
    [{ ...body, method: 'tools/call' }, 400, -32020],
    [body, 400, -32020, { 'mcp-protocol-version': '2025-11-25' }],
    [body, 415, -32000, { 'content-type': 'text/plain' }],
    [{ ...body, method: 'initialize' }, 404, -32601, { 'mcp-method': 'initialize' }],
  ]
  for (const [message, status, code, changed] of messages) {
    const response = await postMessage(access, message, { ...headers, ...changed })
    const { error } = (await response.json()) as Response
    assert.deepEqual([response.status, error?.code], [status, code], JSON.stringify(message))
  }
})

test('http: a subscription is rejected, so that no request stays open', async () => {
  const listen = modern({
    method: 'subscriptions/listen',
    params: { notifications: { toolsListChanged: true } },
  })
  for (let attempt = 0; attempt < 5; attempt++) {
    const response = await postMessage(access, listen.body, listen.headers)
    assert.equal(((await response.json()) as Response).error?.code, -32603)
  }
})

test('stdio: requests of the latest revision get a response, also those that are pending at the end', async (t) => {
  const calls = [1, 2, 3].map((id) => ({ ...modern(callMessage(id, 'get_usage')).body, id }))
  const written = await exchangeLines(t, access, calls)
  const responses = written
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  assert.deepEqual(responses.map(({ id }) => id).sort(), [1, 2, 3])
  for (const { result } of responses) assert.ok(result && !result.isError)
})

test('the metadata of the protected resource leads to the endpoints that issue API keys', async (t) => {
  const server = await serve(t, { engine: 'sqlite', env: { ADIT_BASE_URL: 'https://adit.example.com' } })
  const read = async (path: string) => {
    const response = await fetch(server.url + path)
    assert.equal(response.status, 200)
    assert.equal(response.headers.get('access-control-allow-origin'), '*')
    return response.json()
  }
  const resource = {
    resource_name: 'Adit',
    authorization_servers: ['https://adit.example.com'],
    bearer_methods_supported: ['header'],
  }
  assert.deepEqual(await read('/.well-known/oauth-protected-resource/mcp'), {
    resource: 'https://adit.example.com/mcp',
    ...resource,
  })
  assert.deepEqual(await read('/.well-known/oauth-protected-resource'), {
    resource: 'https://adit.example.com',
    ...resource,
  })
  assert.deepEqual(await read('/.well-known/oauth-authorization-server'), {
    issuer: 'https://adit.example.com',
    authorization_endpoint: 'https://adit.example.com/authorize',
    token_endpoint: 'https://adit.example.com/oauth/token',
    registration_endpoint: 'https://adit.example.com/oauth/register',
    device_authorization_endpoint: 'https://adit.example.com/device/authorize',
    client_id_metadata_document_supported: true,
    authorization_response_iss_parameter_supported: true,
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['none'],
    grant_types_supported: ['authorization_code', 'urn:ietf:params:oauth:grant-type:device_code'],
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
  })
})

test('a client finds the metadata by the URL of the endpoint', async () => {
  const found = await discoverOAuthProtectedResourceMetadata(`${server.url}/mcp`)
  assert.equal(found.resource, `${server.url}/mcp`)
})
