// Attacks on the sign-in of agents: codes that are replayed, stolen or injected, and forged requests.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import {
  approve,
  approveRequest,
  CALLBACK,
  createRequest,
  exchange,
  readRedirect,
  register,
  registerClient,
  signInAgent,
} from '../../support/accounts/agents.ts'
import { addMember, openBrowser, serveWithOwner } from '../../support/accounts/users.ts'
import { addNode, addWorkspace } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { readRows } from '../../support/databases/rows.ts'
import { hello, postMessage } from '../agent.ts'

const setUp = async (engine: (typeof engines)[number]) => {
  const clock = { now: Date.now() }
  return { clock, ...(await serveWithOwner({ after }, { engine, clock: () => clock.now })) }
}

const deployments = await Promise.all(engines.map(setUp))
const [{ server, ann }] = deployments as [Awaited<ReturnType<typeof setUp>>]

const approved = async (url = server.url, user: Pick<typeof ann, 'post'> = ann) =>
  approveRequest(user, createRequest(url, await registerClient(url)))

for (const [index, engine] of engines.entries()) {
  const { server, ann, clock } = deployments[index] as Awaited<ReturnType<typeof setUp>>
  const { url, services } = server

  test(`${engine}: a code that is used again revokes the key that it was exchanged for`, async () => {
    const { token, form } = await signInAgent(url, ann, { name: 'replayed' })
    assert.equal((await postMessage({ url, apiKey: token }, hello)).status, 200)
    const again = await exchange(url, form)
    assert.deepEqual([again.status, again.json.error], [400, 'invalid_grant'])
    assert.equal((await postMessage({ url, apiKey: token }, hello)).status, 401)
    const [key] = await readRows(services, 'api_keys', { label: 'replayed' })
    const entries = await readRows(services, 'audit_log', {
      target_id: key?.id as string,
      action: 'key.revoked',
    })
    assert.deepEqual(
      entries.map(({ detail }) => detail),
      ['code-reused'],
    )
    const third = await exchange(url, form)
    assert.equal(third.json.error, 'invalid_grant')
  })

  test(`${engine}: exchanges of one code at the same time, on all nodes, leave no valid key`, async (t) => {
    const nodes = engine === 'postgres' ? [url, (await addNode(t, server, () => clock.now)).url] : [url]
    const { form } = await approved(url, ann)
    // The second node has the same public URL only behind a load balancer.
    const shared = { ...form, resource: undefined }
    const all = await Promise.all([...nodes, ...nodes, ...nodes].map((each) => exchange(each, shared)))
    const granted = all.filter(({ status }) => status === 200)
    assert.equal(granted.length, 1)
    for (const each of nodes)
      assert.equal(
        (await postMessage({ url: each, apiKey: granted[0]?.json.access_token }, hello)).status,
        401,
      )
  })

  test(`${engine}: a code expires after a minute, and a replay after that still revokes`, async () => {
    const { form } = await approved(url, ann)
    clock.now += 60_000
    const late = await exchange(url, form)
    assert.deepEqual([late.status, late.json.error], [400, 'invalid_grant'])
    assert.match(late.json.error_description, /expired/)
    const { token, form: used } = await signInAgent(url, ann)
    clock.now += 120_000
    await exchange(url, used)
    assert.equal((await postMessage({ url, apiKey: token }, hello)).status, 401)
  })

  test(`${engine}: a stolen code is useless without its verifier, client and redirect URI, and stays usable`, async () => {
    const { form } = await approved(url, ann)
    const other = createRequest(url, await registerClient(url))
    const wrong = {
      'another verifier': { code_verifier: other.form.code_verifier },
      'another client': { client_id: other.form.client_id },
      'another redirect URI': { redirect_uri: 'https://agent.example.com/other' },
      'a redirect URI in another spelling': { redirect_uri: CALLBACK.replace('agent', 'AGENT') },
      'another code': { code: `${form.code?.slice(0, -4)}AAAA` },
      'the challenge as verifier': {
        code_verifier: new URLSearchParams(other.query).get('code_challenge') ?? '',
      },
    }
    for (const [what, change] of Object.entries(wrong)) {
      const { status, json } = await exchange(url, { ...form, ...change })
      assert.deepEqual([status, json.error], [400, 'invalid_grant'], what)
    }
    for (const missing of ['code', 'client_id', 'redirect_uri', 'code_verifier']) {
      const { status, json } = await exchange(url, { ...form, [missing]: undefined })
      assert.deepEqual([status, json.error], [400, 'invalid_request'], missing)
    }
    const elsewhere = await exchange(url, { ...form, resource: 'https://other.example.com/mcp' })
    assert.deepEqual([elsewhere.status, elsewhere.json.error], [400, 'invalid_target'])
    assert.equal((await exchange(url, form)).status, 200, 'the attempts did not use it up')
  })
}

test('a code that is injected into the request of another user is rejected', async () => {
  const mallory = await addMember(server, 'Mallory', 'member')
  const victim = createRequest(server.url, await registerClient(server.url))
  const { form } = await approved(server.url, mallory)
  const { status, json } = await exchange(server.url, { ...victim.form, code: form.code })
  assert.deepEqual([status, json.error], [400, 'invalid_grant'], 'the verifier belongs to another request')
})

test('requests without PKCE by S256, for another resource or with other response types are not approved', async () => {
  const clientId = await registerClient(server.url)
  const wrong: Record<string, [Record<string, string | undefined>, string]> = {
    'no challenge': [{ code_challenge: undefined }, 'invalid_request'],
    'plain challenge': [{ code_challenge_method: 'plain' }, 'invalid_request'],
    'no method, which means plain': [{ code_challenge_method: undefined }, 'invalid_request'],
    'short challenge': [{ code_challenge: 'abc' }, 'invalid_request'],
    'no resource': [{ resource: undefined }, 'invalid_target'],
    'another server': [{ resource: 'https://other.example.com/mcp' }, 'invalid_target'],
    'another path': [{ resource: `${server.url}/api/v1` }, 'invalid_target'],
    'the whole server': [{ resource: server.url }, 'invalid_target'],
    'an implicit grant': [{ response_type: 'token' }, 'unsupported_response_type'],
    'a hybrid': [{ response_type: 'code token' }, 'unsupported_response_type'],
    'a state without end': [{ state: 'x'.repeat(4_001) }, 'invalid_request'],
  }
  for (const [what, [change, error]] of Object.entries(wrong)) {
    const { query } = createRequest(server.url, clientId, change)
    const read = await ann.post('/agents/read', { request: query })
    assert.ok(read.json.problem, what)
    assert.equal((await approve(ann, query)).status, 400, what)
    const denied = readRedirect(await ann.post('/agents/deny', { request: query }))
    assert.deepEqual([denied.error, denied.iss, denied.code], [error, server.url, undefined], what)
  }
})

test('a request whose redirect URI was not registered is never redirected, not even with an error', async () => {
  const registered: Record<string, string[]> = {
    [CALLBACK]: [
      'https://evil.example.com/callback?app=1',
      `${CALLBACK}&more=1`,
      'https://agent.example.com/callback',
      'https://agent.example.com/callback/../other?app=1',
      'https://agent.example.com:8443/callback?app=1',
      'https://agent.example.com@evil.example.com/callback?app=1',
      'http://agent.example.com/callback?app=1',
      `${CALLBACK}#fragment`,
      'javascript:alert(1)',
      '',
    ],
    'http://127.0.0.1:1234/callback': [
      'http://127.0.0.1.evil.example.com/callback',
      'http://127.0.0.1:1234@evil.example.com/callback',
      'http://localhost:1234/callback',
      'http://127.0.0.1:1234/callback/',
      'http://127.0.0.1:1234/other',
      'https://127.0.0.1:1234/callback',
      'http://127.0.0.1:99999/callback',
      'http://127.0.0.2/callback',
    ],
    'http://localhost/callback': ['http://localhost.evil.example.com/callback', 'http://127.0.0.1/callback'],
    'com.example.app:/callback': ['com.example.app2:/callback', 'com.example.app:/callback2'],
  }
  for (const [uri, others] of Object.entries(registered)) {
    const clientId = await registerClient(server.url, uri)
    for (const redirectUri of [...others, undefined]) {
      const { query } = createRequest(server.url, clientId, { redirect_uri: redirectUri })
      for (const response of [
        await ann.post('/agents/read', { request: query }),
        await ann.post('/agents/deny', { request: query }),
        await approve(ann, query),
      ]) {
        assert.equal(response.status, 400, `${redirectUri}`)
        assert.ok(!response.text.includes('redirectTo'), `${redirectUri}`)
      }
    }
  }
})

test('an agent on this computer may have another port in each sign-in', async () => {
  for (const host of ['127.0.0.1', '[::1]', 'localhost']) {
    const clientId = await registerClient(server.url, `http://${host}:1234/callback`)
    const redirectUri = `http://${host}:5678/callback`
    const { query, form } = createRequest(server.url, clientId, { redirect_uri: redirectUri })
    const { json } = await ann.post('/agents/read', { request: query })
    assert.deepEqual([json.isLocal, json.target], [true, host])
    const { url, code } = readRedirect(await approve(ann, query))
    assert.equal(url.port, '5678')
    assert.equal((await exchange(server.url, { ...form, code })).status, 200)
  }
})

test('repeated parameters, and forms with them, are rejected', async () => {
  const { query, form } = await approved()
  for (const repeated of ['redirect_uri=https://evil.example.com', 'client_id=x', 'state=2'])
    assert.equal((await approve(ann, `${query}&${repeated}`)).status, 400, repeated)
  const response = await fetch(`${server.url}/oauth/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: `${new URLSearchParams({ ...form } as Record<string, string>)}&code=x`,
  })
  assert.equal(response.status, 400)
  assert.equal(((await response.json()) as { error: string }).error, 'invalid_request')
})

test('another site, a user without a session and one of another workspace cannot approve', async () => {
  const { query } = createRequest(server.url, await registerClient(server.url))
  const path = '/workspaces/acme/agents'
  const body = { request: query, managesKeys: false }
  const crossSite: Record<string, string>[] = [
    { origin: 'https://evil.example.com' },
    { 'sec-fetch-site': 'cross-site' },
    { 'content-type': 'text/plain' },
  ]
  for (const headers of crossSite)
    assert.ok([400, 403].includes((await ann.call('POST', path, body, headers)).status))
  assert.equal((await openBrowser(server.url).post(path, body)).status, 401)
  await addWorkspace(server, 'elsewhere')
  const eve = await addMember(server, 'Eve', 'owner', 'elsewhere')
  assert.equal((await eve.post(path, body)).status, 404)
})

test('the page cannot be framed, sends no referrer and is not cached', async () => {
  const { query } = createRequest(server.url, await registerClient(server.url))
  const { headers, status } = await fetch(`${server.url}/authorize?${query}`)
  assert.equal(status, 200)
  assert.match(headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/)
  assert.deepEqual(
    [headers.get('referrer-policy'), headers.get('cache-control')],
    ['no-referrer', 'no-store'],
  )
})

test('pages of other sites can neither register clients nor exchange codes', async () => {
  const { form } = await approved()
  const headers = { origin: 'https://evil.example.com' }
  const exchanged = await exchange(server.url, form, headers)
  assert.equal(exchanged.status, 403)
  assert.equal(exchanged.headers.get('access-control-allow-origin'), null)
  assert.equal((await register(server.url, { redirect_uris: [CALLBACK] }, headers)).status, 403)
  assert.equal((await fetch(`${server.url}/oauth/token`, { method: 'OPTIONS', headers })).status, 403)
  assert.equal((await exchange(server.url, form)).status, 200)
})
