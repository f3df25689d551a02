// Errors that are common to all operations.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createSecret } from '../../../src/lib/credentials/secret.ts'
import { createEdge } from '../../../src/server/domain/tunnels/edges.ts'
import { operator, rename, serve } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'

for (const engine of engines) {
  const server = await serve({ after }, { engine })

  test(`${engine}: a missing or invalid key is 401 with a message that names the reason`, async () => {
    const { token } = server.key
    const edge = await createEdge(server.services, operator, 'fra-1')
    const flipped = token.slice(0, -1) + (token.endsWith('0') ? '1' : '0')
    const cases: [authorization: string | undefined, message: RegExp][] = [
      [undefined, /^Send an API key/],
      ['', /^Send an API key/],
      ['Bearer', /^Send an API key/],
      ['Bearer ', /^Send an API key/],
      [`Basic ${btoa(`${token}:`)}`, /^Send an API key/],
      [token, /^Send an API key/],
      [`Token ${token}`, /^Send an API key/],
      [`Bearer ${token} ${token}`, /^Send an API key/],
      [`Bearer ${token},`, /Malformed API key/],
      [`Bearer ${flipped}`, /Malformed API key/],
      [`Bearer ${token.slice(0, -1)}`, /Malformed API key/],
      [`Bearer ${token.toLowerCase()}`, /Malformed API key/],
      ['Bearer adit_', /Malformed API key/],
      [`Bearer ${'x'.repeat(8_000)}`, /Malformed API key/],
      [
        `Bearer ${edge.token}`,
        /This is an edge credential, or the key of an agent for \/mcp\. Send an API key/,
      ],
      [`Bearer ${createSecret('key', (bytes) => Buffer.alloc(bytes, 7))}`, /Unknown API key/],
    ]
    for (const [authorization, message] of cases) {
      const { status, json, headers } = await server.call('GET', '/workspace', {
        key: null,
        headers: authorization === undefined ? {} : { authorization },
      })
      assert.equal(status, 401, authorization ?? 'none')
      assert.deepEqual(Object.keys(json), ['error', 'message'])
      assert.equal(json.error, 'unauthorized')
      assert.match(json.message, message)
      assert.equal(headers.get('www-authenticate'), 'Bearer')
    }
  })

  test(`${engine}: without a key an invalid request is 401, like a valid one`, async () => {
    const wrong = [
      ['GET', '/usage?days=abc', {}],
      ['DELETE', '/tokens/tok_x', {}],
      ['POST', '/tokens', { json: '{' }],
      ['POST', '/tokens', { body: 'x'.repeat(100_000), headers: { 'content-type': 'text/plain' } }],
    ] as const
    for (const [method, path, init] of wrong)
      assert.equal((await server.call(method, path, { ...init, key: null })).status, 401, `${method} ${path}`)
  })

  test(`${engine}: a body sent to an operation without one is ignored`, async () => {
    const created = (await server.post('/tokens', {})).json
    const revoked = await server.call('DELETE', `/tokens/${created.id}`, {
      body: '{',
      headers: { 'content-type': 'text/plain' },
    })
    assert.equal(revoked.status, 200)
  })

  test(`${engine}: an unexpected failure is 500 with a request id and nothing else`, async (t) => {
    const server = await serve(t, { engine })
    await rename(server, 'usage_days', 'usage_days_away')
    const { status, text, headers } = await server.call('GET', '/usage')
    assert.deepEqual([status, text], [500, '{"error":"internal"}'])
    assert.ok(headers.get('x-request-id'))
    assert.equal(headers.get('access-control-allow-origin'), '*')
  })
}

// What follows does not depend on the engine.
const server = await serve({ after }, { engine: 'sqlite' })

test('the scheme may be written in any case', async () => {
  const { call, key } = server
  for (const scheme of ['Bearer', 'bearer', 'BEARER', 'Bearer '])
    assert.equal(
      (await call('GET', '/workspace', { key: null, headers: { authorization: `${scheme} ${key.token}` } }))
        .status,
      200,
    )
})

test('a key outside of the header is ignored', async () => {
  const { call, key } = server
  const elsewhere = [
    ['GET', `/workspace?key=${key.token}`, {}],
    ['GET', `/workspace?access_token=${key.token}`, {}],
    ['GET', `/workspace?authorization=Bearer%20${key.token}`, {}],
    ['GET', '/workspace', { cookie: `authorization=Bearer ${key.token}` }],
    ['GET', '/workspace', { 'x-api-key': key.token }],
  ] as const
  for (const [method, path, headers] of elsewhere)
    assert.equal((await call(method, path, { key: null, headers })).status, 401)
})

test('an unknown path or method is 404, with a key or without', async () => {
  const { call, key } = server
  const unknown = [
    ['GET', ''],
    ['GET', '/'],
    ['GET', '/nope'],
    ['GET', '/workspace/'],
    ['GET', '/Workspace'],
    ['GET', '//workspace'],
    ['GET', '/workspace/acme'],
    ['POST', '/workspace'],
    ['PUT', '/tokens'],
    ['PATCH', '/tokens/tok_x'],
    ['GET', '/tokens/tok_x'],
    ['DELETE', '/tokens'],
    ['POST', '/usage'],
    ['GET', '/openapi.yaml'],
    ['POST', '/openapi.json'],
    ['GET', '/workspace;x=1'],
  ] as const
  for (const [method, path] of unknown)
    for (const presented of [key.token, null, 'nonsense']) {
      const { status, text } = await call(method, path, { key: presented })
      assert.deepEqual([status, text], [404, '{"error":"not_found"}'], `${method} ${path}`)
    }
  const large = await call('POST', '/nope', { body: 'x'.repeat(100_000), headers: { 'content-type': ';' } })
  assert.equal(large.status, 404)
})

test('an invalid body is 400 and names the field', async () => {
  const { call } = server
  const json = 'application/json'
  const cases: [body: string | Buffer, type: string | undefined, path: string][] = [
    ['{', json, '/body'],
    ['', json, 'accepted'],
    [' ', json, '/body'],
    ['null', json, '/body'],
    ['[]', json, '/body'],
    ['"label"', json, '/body'],
    ['7', json, '/body'],
    ['{"label":"a"}{"label":"b"}', json, '/body'],
    ["{'label':'a'}", json, '/body'],
    ['{"label":NaN}', json, '/body'],
    [Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), json, '/body'],
    [Buffer.from('\ufeff{"label":"bom"}'), json, '/body'],
    [Buffer.from('{"label":"a"}', 'utf16le'), json, '/body'],
    [`${'['.repeat(8_000)}${']'.repeat(8_000)}`, json, '/body'],
    [`{"label":${'['.repeat(7_000)}${']'.repeat(7_000)}}`, json, '/body/label'],
    [`{"label":"${'x'.repeat(20_000)}"}`, json, '/body'],
    ['{"label":"a"}', undefined, '/headers/content-type'],
    ['{"label":"a"}', 'text/plain', '/headers/content-type'],
    ['label=a', 'application/x-www-form-urlencoded', '/headers/content-type'],
    ['{"label":"a"}', 'application/jsonp', '/headers/content-type'],
    ['{"label":"a"}', 'application/json, text/plain', '/headers/content-type'],
    ['{"label":"a"}', 'application/json; charset=latin1', '/headers/content-type'],
    ['{"label":7}', 'application/json', '/body/label'],
    ['{"label":7}', 'APPLICATION/JSON', '/body/label'],
    ['{"label":7}', 'application/json;', '/body/label'],
    ['{"label":7}', 'application/json\t; charset=UTF-8', '/body/label'],
    ['{"label":7}', 'application/json; charset="utf-8"', '/body/label'],
  ]
  for (const [body, type, path] of cases) {
    const what = `${type} ${String(body).slice(0, 40)}`
    const blob = typeof body === 'string' && type === undefined ? new Blob([body]) : body
    const response = await call('POST', '/tokens', {
      body: blob as Blob,
      headers: type === undefined ? {} : { 'content-type': type },
    })
    if (path === 'accepted') {
      assert.equal(response.status, 201, what)
      continue
    }
    assert.equal(response.status, 400, what)
    assert.deepEqual(Object.keys(response.json), ['error', 'details'], what)
    assert.equal(response.json.error, 'invalid_request')
    assert.equal(response.json.details[0].path, path, what)
  }
})

test('the rate limit per key is off by default, and 429 with its headers if set', async (t) => {
  let now = Date.parse('2026-03-01T10:00:00.000Z')
  const limiting = await serve(t, { engine: 'sqlite', env: { ADIT_RATE_LIMIT: '3' }, clock: () => now })
  assert.equal((await server.call('GET', '/workspace')).headers.get('ratelimit'), null)
  for (const left of [2, 1, 0]) {
    const { status, headers } = await limiting.call('GET', '/workspace')
    assert.equal(status, 200)
    assert.equal(headers.get('ratelimit'), `"key";r=${left};t=60`)
    assert.equal(headers.get('ratelimit-policy'), '"key";q=3;w=60')
  }
  now += 15_000
  const limited = await limiting.call('GET', '/tokens')
  assert.deepEqual([limited.status, limited.json.error], [429, 'rate_limited'])
  assert.equal(limited.headers.get('retry-after'), '45')
  assert.equal(limited.headers.get('ratelimit'), '"key";r=0;t=45')
  // It does not affect other callers, and a forged header neither resets nor consumes it.
  const forged = await limiting.call('GET', '/workspace', { headers: { 'x-forwarded-for': '203.0.113.9' } })
  assert.equal(forged.status, 429)
  assert.equal((await limiting.call('GET', '/workspace', { key: null })).status, 401)
  assert.equal((await limiting.call('GET', '/openapi.json', { key: null })).status, 200)
  now += 45_000
  assert.equal((await limiting.call('GET', '/workspace')).status, 200)
  // A clock that is set back must not lock out callers until it has caught up.
  for (let sent = 0; sent < 3; sent++) await limiting.call('GET', '/workspace')
  assert.equal((await limiting.call('GET', '/workspace')).status, 429)
  now -= 3_600_000
  assert.equal((await limiting.call('GET', '/workspace')).status, 200)
})
