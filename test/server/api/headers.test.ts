// Headers of every response.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { readTraceId } from '../../../src/server/http/server/trace-context.ts'
import { serve } from '../../support/api/server.ts'

const engine = 'sqlite'
const server = await serve({ after }, { engine })

test('every API response allows any origin, has a request id and disables sniffing', async () => {
  const { call, key } = server
  const requests = [
    ['GET', '/workspace', key.token, 200],
    ['POST', '/tokens', key.token, 201],
    ['GET', '/openapi.json', null, 200],
    ['GET', '/workspace', null, 401],
    ['GET', '/nope', null, 404],
    ['GET', '/usage?days=x', key.token, 400],
    ['DELETE', '/tokens/%zz', key.token, 404],
    ['GET', '/%', key.token, 404],
    ['DELETE', `/tokens/${'x'.repeat(300)}`, key.token, 404],
    ['OPTIONS', '/tokens', null, 204],
    ['OPTIONS', '/nope', null, 204],
  ] as const
  const ids = new Set<string>()
  for (const [method, path, presented, expected] of requests) {
    const { status, headers } = await call(method, path, { key: presented })
    assert.equal(status, expected, `${method} ${path}`)
    assert.equal(headers.get('access-control-allow-origin'), '*')
    assert.equal(headers.get('access-control-allow-credentials'), null)
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
    assert.match(headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/)
    ids.add(headers.get('x-request-id') ?? '')
    if (expected !== 204) assert.equal(headers.get('content-type'), 'application/json; charset=utf-8')
    if (expected >= 400) assert.equal(headers.get('cache-control'), 'no-store')
  }
  assert.equal(ids.size, requests.length)
})

test('a preflight allows the methods and headers of the API', async () => {
  const { call } = server
  const { status, headers, text } = await call('OPTIONS', '/tokens/tok_x', {
    key: null,
    headers: {
      origin: 'https://dashboard.example',
      'access-control-request-method': 'DELETE',
      'access-control-request-headers': 'authorization,content-type,idempotency-key',
    },
  })
  assert.deepEqual([status, text], [204, ''])
  assert.match(headers.get('access-control-allow-methods') ?? '', /GET.*POST.*DELETE/)
  assert.equal(headers.get('access-control-allow-headers'), 'authorization,content-type,idempotency-key')
})

test('a preflight allows the headers that it asks for, if they are names of headers', async () => {
  const allowedFor = async (names: string) => {
    const { status, headers } = await server.call('OPTIONS', '/usage', {
      key: null,
      headers: { 'access-control-request-headers': names },
    })
    assert.equal(status, 204)
    assert.equal(headers.get('vary'), 'Access-Control-Request-Headers')
    return headers.get('access-control-allow-headers') ?? ''
  }
  for (const names of ['authorization', 'authorization, x-stainless-lang,sentry-trace', "x!#$%&'*+.^_`|~-1"])
    assert.equal(await allowedFor(names), names)
  const usual = await allowedFor('')
  for (const name of ['Authorization', 'Content-Type', 'Idempotency-Key', 'Traceparent', 'Tracestate'])
    assert.ok(usual.includes(name), name)
  for (const names of ['x y', 'x,,y', 'x: y', 'x;y', '"x"', '\u00e9', `x${',x'.repeat(500)}`])
    assert.equal(await allowedFor(names), usual, names)
})

test('a preflight allows no method that the variant does not have', async (t) => {
  const { call } = await serve(t, { engine, env: { ADIT_API_VARIANT: 'B' } })
  const { headers } = await call('OPTIONS', '/tokens', { key: null })
  assert.equal(headers.get('access-control-allow-methods'), 'GET, HEAD, OPTIONS')
})

test('outside the API there is no cross-origin header, and unknown API paths are JSON', async () => {
  const { url } = server
  for (const path of ['/healthz', '/readyz', '/docs', '/nope'])
    assert.equal((await fetch(url + path)).headers.get('access-control-allow-origin'), null, path)
  for (const path of ['/api/nope', '/api/v2/workspace', '/api/', '/docs/static/nope.js', '/nope'])
    assert.equal(await (await fetch(url + path)).text(), '{"error":"not_found"}', path)
  for (const path of ['/%61pi/v1/nope', '/%61pi/v1/%zz'])
    assert.equal((await fetch(url + path)).headers.get('access-control-allow-origin'), '*', path)
})

test('a request id of the client is kept if it is safe to log, and replaced if not', async () => {
  const { call } = server
  const idFor = async (given: string) =>
    (await call('GET', '/workspace', { headers: { 'x-request-id': given } })).headers.get('x-request-id')
  assert.equal(await idFor('trace-42.a:b_c'), 'trace-42.a:b_c')
  for (const bad of ['a b', 'a"b', '{}', 'x'.repeat(65), '\u00e9']) assert.notEqual(await idFor(bad), bad)
})

test('a matching If-None-Match is 304', async () => {
  for (const path of ['/workspace', '/tokens', '/usage', '/openapi.json']) {
    const first = await server.call('GET', path)
    const etag = first.headers.get('etag') as string
    assert.match(etag, /^(W\/)?"[\w-]+"$/)
    for (const ifNoneMatch of [etag, `W/${etag.replace('W/', '')}`, `"other", ${etag}`, '*']) {
      const again = await server.call('GET', path, { headers: { 'if-none-match': ifNoneMatch } })
      assert.deepEqual([again.status, again.text], [304, ''], `${path} ${ifNoneMatch}`)
      assert.equal(again.headers.get('etag'), etag)
      assert.equal(again.headers.get('content-length'), null)
      assert.equal(again.headers.get('access-control-allow-origin'), '*')
    }
    for (const ifNoneMatch of ['"other"', etag.slice(1, -1), ''])
      assert.equal(
        (await server.call('GET', path, { headers: { 'if-none-match': ifNoneMatch } })).status,
        200,
      )
  }
  const before = (await server.call('GET', '/tokens')).headers.get('etag')
  await server.post('/tokens', {})
  const changed = await server.call('GET', '/tokens', { headers: { 'if-none-match': before as string } })
  assert.equal(changed.status, 200)
  const rejected = await server.call('GET', '/tokens', { key: null, headers: { 'if-none-match': '*' } })
  assert.equal(rejected.status, 401)
})

test('HEAD is GET without the body', async () => {
  const { call } = server
  const get = await call('GET', '/workspace')
  const head = await call('HEAD', '/workspace')
  assert.deepEqual([head.status, head.text], [200, ''])
  assert.equal(head.headers.get('content-length'), get.headers.get('content-length'))
  assert.equal(head.headers.get('etag'), get.headers.get('etag'))
  assert.equal((await call('HEAD', '/workspace', { key: null })).status, 401)
  const held = await call('HEAD', '/workspace', {
    headers: { 'if-none-match': get.headers.get('etag') as string },
  })
  assert.equal(held.status, 304)
})

test('Strict-Transport-Security is sent if the base URL is https', async (t) => {
  const secure = await serve(t, { engine, env: { ADIT_BASE_URL: 'https://adit.example.com' } })
  assert.equal((await server.call('GET', '/workspace')).headers.get('strict-transport-security'), null)
  assert.match(
    (await secure.call('GET', '/workspace')).headers.get('strict-transport-security') ?? '',
    /max-age=\d{8}/,
  )
})

test('/healthz and /readyz are 200 on a healthy server', async () => {
  assert.deepEqual(await (await fetch(`${server.url}/healthz`)).json(), { status: 'ok' })
  assert.deepEqual(await (await fetch(`${server.url}/readyz`)).json(), { status: 'ready' })
})

test('a trace id is taken from a valid traceparent only', () => {
  const traceId = '0af7651916cd43dd8448eb211c80319c'
  const parent = 'b7ad6b7169203331'
  for (const valid of [
    `00-${traceId}-${parent}-01`,
    `00-${traceId}-${parent}-00`,
    `cc-${traceId}-${parent}-01-more`,
  ])
    assert.equal(readTraceId(valid), traceId, valid)
  for (const invalid of [
    undefined,
    '',
    `ff-${traceId}-${parent}-01`,
    `00-${'0'.repeat(32)}-${parent}-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId}-${parent}-01-more`,
    `00-${traceId.toUpperCase()}-${parent}-01`,
    `00-${traceId}-${parent}-01, 00-${traceId}-${parent}-01`,
    `00-${traceId}-${parent}`,
    `00-${traceId}"}-${parent}-01`,
    [`00-${traceId}-${parent}-01`],
  ])
    assert.equal(readTraceId(invalid), undefined, String(invalid))
})
