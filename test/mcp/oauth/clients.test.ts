// The clients by which agents sign in: registrations that their id contains, and metadata documents.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import {
  approveRequest,
  CALLBACK,
  createRequest,
  exchange,
  register,
  registerClient,
} from '../../support/accounts/agents.ts'
import { createPublisher, type RespondDocument, sendJson } from '../../support/accounts/client-documents.ts'
import { serveWithOwner } from '../../support/accounts/users.ts'
import { addNode } from '../../support/api/server.ts'
import { readRows } from '../../support/databases/rows.ts'

const env = { ADIT_WEBHOOK_PRIVATE_NETWORKS: '127.0.0.0/8' }
const clock = { now: Date.now() }
const { server, ann } = await serveWithOwner({ after }, { engine: 'sqlite', env, clock: () => clock.now })
const publicOnly = await serveWithOwner({ after }, { engine: 'sqlite' })

const read = (clientId: string, more = {}, user = ann, { url } = server) =>
  user.post('/agents/read', { request: createRequest(url, clientId, more).query })

const metadata = (clientId: string, more = {}) => ({
  client_id: clientId,
  client_name: 'Published agent',
  redirect_uris: [CALLBACK, 'javascript:alert(1)', 7],
  ...more,
})

test('an agent is identified by its metadata document, which is read once in five minutes', async (t) => {
  const publisher = await createPublisher(t)
  if (!publisher) return t.skip('openssl is not installed')
  publisher.respond = (response, url) => sendJson(metadata(url))(response)
  const clientId = `${publisher.url}/agent.json`
  const { json } = await read(clientId)
  assert.partialDeepStrictEqual(json, {
    name: 'Published agent',
    host: new URL(publisher.url).host,
    target: 'agent.example.com',
    problem: null,
  })
  const { form } = await approveRequest(ann, createRequest(server.url, clientId))
  assert.equal((await exchange(server.url, form)).status, 200)
  const [key] = await readRows(server.services, 'api_keys', { label: 'Published agent' })
  assert.equal(key?.agent_host, new URL(publisher.url).host)
  assert.deepEqual(publisher.requests, ['/agent.json'])
  assert.equal((await read(clientId, { redirect_uri: 'javascript:alert(1)' })).status, 400)
  clock.now += 300_000
  await read(clientId)
  assert.equal(publisher.requests.length, 2)
})

test('a metadata document that is not the one of its URL, or breaks a limit, identifies nobody', async (t) => {
  const publisher = await createPublisher(t)
  if (!publisher) return t.skip('openssl is not installed')
  const bad: Record<string, [RespondDocument, RegExp]> = {
    'of another client': [sendJson(metadata('https://claude.ai/client.json')), /own URL as client_id/],
    'without a client_id': [sendJson({ redirect_uris: [CALLBACK] }), /own URL as client_id/],
    'not an object': [sendJson([]), /own URL as client_id/],
    'not JSON': [
      (response) => response.setHeader('content-type', 'application/json').end('{'),
      /is not JSON/,
    ],
    HTML: [
      (response, url) => response.setHeader('content-type', 'text/html').end(JSON.stringify(metadata(url))),
      /is not application\/json/,
    ],
    'larger than 5 KiB': [
      (response, url) => sendJson(metadata(url, { client_uri: 'x'.repeat(5_200) }))(response),
      /larger than 5 KiB/,
    ],
    'a redirect': [
      (response) => response.writeHead(302, { location: '/moved' }).end(),
      /redirects are not followed/,
    ],
    missing: [(response) => response.writeHead(404).end(), /status 404/],
    silent: [() => {}, /no response within 5 seconds/],
    'cut off': [(response) => response.destroy(), /no response/],
    'without redirect URIs': [
      (response, url) => sendJson({ client_id: url })(response),
      /has not registered/,
    ],
  }
  for (const [index, [what, [respond, reason]]] of Object.entries(bad).entries()) {
    publisher.respond = respond
    const { status, json } = await read(`${publisher.url}/${index}.json`)
    assert.equal(status, 400, what)
    assert.match(json.details[0].message, reason, what)
  }
  assert.ok(!publisher.requests.includes('/moved'))
})

test('documents are not read from private addresses, by other schemes or without a session', async () => {
  const { server, ann } = publicOnly
  const forbidden = [
    'https://127.0.0.1/client.json',
    'https://[::1]/client.json',
    'https://169.254.169.254/latest/meta-data',
    'https://2130706433/client.json',
    'https://localhost/client.json',
    'http://agent.example.com/client.json',
    'file:///etc/passwd',
    'https://agent.example.com/',
    'https://agent.example.com',
    'https://agent.example.com/a/../client.json',
    'https://user@agent.example.com/client.json',
    'https://agent.example.com/client.json#x',
    'adit-cli',
    '',
  ]
  for (const clientId of forbidden)
    assert.equal((await read(clientId, {}, ann, server)).status, 400, clientId)
  const { query } = createRequest(server.url, 'https://127.0.0.1/client.json')
  assert.equal((await fetch(`${server.url}/authorize?${query}`)).status, 200, 'the page reads nothing itself')
})

test('a registration is in its client_id: another node knows it, and it cannot be changed', async (t) => {
  const clientId = await registerClient(server.url)
  const node = await addNode(t, server)
  assert.equal((await read(clientId)).status, 200)
  assert.equal((await registerClient(node.url)).startsWith('adit_client_'), true)
  const onOther = await registerClient(node.url)
  assert.equal((await read(onOther)).json.name, 'Test agent')
  const forged = [
    clientId.slice(0, -2),
    `${clientId}AA`,
    clientId.replace(/.{8}$/, 'AAAAAAAA'),
    `adit_client_${Buffer.from(JSON.stringify({ name: 'x', redirectUris: [CALLBACK] })).toString('base64url')}`,
    `adit_client_${'x'.repeat(4_000)}`,
    clientId.replace(/(?<=^.{20})./, (character) => (character === 'x' ? 'y' : 'x')),
  ]
  for (const each of forged) assert.equal((await read(each)).status, 400, each.slice(0, 60))
})

test('only redirect URIs that a browser may safely go to are registered', async () => {
  const { url } = publicOnly.server
  const allowed = [
    'https://agent.example.com/callback',
    'http://localhost:8080/callback',
    'http://127.0.0.1',
    'http://[::1]:3/x?y',
    'com.example.app:/callback',
    'cursor://anysphere.cursor-mcp/oauth/callback',
  ]
  const registered = await register(url, { redirect_uris: allowed })
  assert.deepEqual([registered.status, registered.json.redirect_uris], [201, allowed])
  assert.equal(registered.json.token_endpoint_auth_method, 'none')
  const forbidden = [
    'javascript:alert(1)',
    'JavaScript:alert(1)',
    'java\tscript:alert(1)',
    'data:text/html,x',
    'vbscript:x',
    'blob:https://agent.example.com/x',
    'file:///etc/passwd',
    'about:blank',
    'ws://agent.example.com/',
    'ftp://agent.example.com/',
    'mailto:ann@example.com',
    'myapp:/callback',
    'http://agent.example.com/callback',
    'http://localhost.example.com/',
    'http://127.0.0.1.example.com/',
    'http://127.0.0.1@evil.example.com/',
    'http://0.0.0.0/',
    'https://user:password@agent.example.com/',
    'https://agent.example.com/#fragment',
    'https:agent.example.com',
    'https:\\\\agent.example.com',
    'https://agent.example.com/ x',
    'https://',
    '//agent.example.com',
    '/callback',
    '',
  ]
  for (const uri of forbidden) {
    const { status, json } = await register(url, { redirect_uris: ['https://agent.example.com/', uri] })
    assert.deepEqual([status, json.error], [400, 'invalid_redirect_uri'], uri)
  }
})

test('the schemes of editors lead to their extensions, not to what else the editor opens', async () => {
  const status = async (uri: string) => (await register(server.url, { redirect_uris: [uri] })).status
  assert.equal(await status('vscode://publisher.extension/callback?app=1'), 201)
  for (const uri of [
    'cursor://anysphere.cursor-deeplink/mcp/install?name=x&config=x',
    'cursor://ANYSPHERE.cursor-deeplink/mcp/install?name=x&config=x',
    'vscode:mcp/install?x',
    'vscode://file/etc/passwd',
    'vscode-insiders://vscode.git/clone?url=https://evil.example.com',
    'windsurf://windsurf-mcp-registry?serverName=x',
  ])
    assert.equal(await status(uri), 400, uri)
})

test('a redirect URI with a parameter of the response is not registered', async () => {
  for (const parameter of ['code=x', 'state=x', 'iss=https://evil.example.com', 'error', 'a=b&%63ode=x'])
    for (const uri of [
      `https://agent.example.com/callback?${parameter}`,
      `com.example.app:/x?${parameter}`,
    ]) {
      const { status, json } = await register(server.url, { redirect_uris: [uri] })
      assert.deepEqual([status, json.error], [400, 'invalid_redirect_uri'], uri)
    }
})

test('registrations are bounded in size and number, and errors have the form of OAuth', async (t) => {
  const fresh = await serveWithOwner(t, { engine: 'sqlite' })
  const { url } = fresh.server
  const tooLarge: [object, string][] = [
    [{ redirect_uris: [] }, 'invalid_redirect_uri'],
    [
      { redirect_uris: Array(5).fill(`https://agent.example.com/${'x'.repeat(450)}`) },
      'invalid_redirect_uri',
    ],
    [{ redirect_uris: Array(11).fill(CALLBACK) }, 'invalid_request'],
    [{ redirect_uris: [CALLBACK], client_name: 'x'.repeat(201) }, 'invalid_request'],
    [{ redirect_uris: [`https://agent.example.com/${'x'.repeat(500)}`] }, 'invalid_request'],
    [{ redirect_uris: 'https://agent.example.com/' }, 'invalid_request'],
    [{}, 'invalid_request'],
    [{ redirect_uris: [CALLBACK], more: 'x'.repeat(20_000) }, 'invalid_request'],
  ]
  for (const [metadata, error] of tooLarge) {
    const { status, json } = await register(url, metadata)
    assert.deepEqual([status, json.error, typeof json.error_description], [400, error, 'string'])
  }
  const largest = await register(url, {
    client_name: '\u{1f980}'.repeat(80),
    redirect_uris: Array.from({ length: 4 }, () => `https://agent.example.com/${'x'.repeat(470)}`),
  })
  assert.equal(largest.status, 201)
  assert.ok(largest.json.client_id.length <= 4_000, largest.json.client_id.length)
  const { query } = createRequest(url, largest.json.client_id, {
    redirect_uri: `https://agent.example.com/${'x'.repeat(470)}`,
    state: 's'.repeat(4_000),
  })
  assert.equal((await fetch(`${url}/authorize?${query}`)).status, 200, 'the largest request fits into a URL')
  assert.equal((await fresh.ann.post('/agents/read', { request: query })).json.problem, null)
  const statuses = new Set<number>()
  for (let count = 0; count < 30; count++)
    statuses.add((await register(url, { redirect_uris: [CALLBACK] })).status)
  assert.deepEqual([...statuses], [201, 429])
})
