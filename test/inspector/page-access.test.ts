// The port for the page: only the page itself gets anything, and the API only with a bearer.
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { openInspector } from '../../src/inspector/open.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import { until } from '../support/until.ts'
import { createRuntimeFolder } from './support.ts'

const FILES: Record<string, string> = {
  'index.html': '<script nonce="__CSP_NONCE__"></script>',
  'assets/main.js': 'main()',
}

const CONNECTIONS_MAX = 200

async function start(t: Test) {
  const inspector = await openInspector({
    version: '1.2.3',
    command: 'adit start',
    maskHeaders: [],
    socketFolder: join(createRuntimeFolder(t), 'adit'),
    files: { names: new Set(Object.keys(FILES)), read: async (name) => Buffer.from(FILES[name] ?? '') },
  })
  atEnd(t, () => inspector.close())
  const url = new URL(inspector.createLink() ?? '')
  const port = Number(url.port)
  return { inspector, port, token: url.hash.slice('#token='.length), send: sender(port) }
}

interface Sent {
  method?: string
  headers?: Record<string, string>
  body?: string
}

const sender =
  (port: number) =>
  (path: string, { method = 'GET', headers = {}, body = '' }: Sent = {}) =>
    new Promise<{ status: number; text: string; headers: NodeJS.Dict<string | string[]> }>(
      (resolve, reject) => {
        const sent = request({ host: '127.0.0.1', port, path, method, headers, agent: false }, (response) => {
          let text = ''
          response.on('data', (chunk) => {
            text += chunk
          })
          response.on('end', () =>
            resolve({ status: response.statusCode ?? 0, text, headers: response.headers }),
          )
        })
        sent.on('error', reject)
        sent.end(body)
      },
    )

const openSession = async ({ send, token }: Awaited<ReturnType<typeof start>>) => {
  const { text } = await send('/api/session', { method: 'POST', body: JSON.stringify({ token }) })
  return { authorization: `Bearer ${JSON.parse(text).bearer}` }
}

test('the token of a link opens one session, once, and only its bearer opens the API', async (t) => {
  const started = await start(t)
  const { send, token, inspector } = started
  assert.equal((await send('/api/info')).status, 401)
  assert.equal((await send('/api/info', { headers: { authorization: `Bearer ${token}` } })).status, 401)
  const headers = await openSession(started)
  const { status, text, headers: sent } = await send('/api/info', { headers })
  assert.equal(status, 200)
  assert.equal(JSON.parse(text).version, '1.2.3')
  assert.equal(sent['set-cookie'], undefined)
  assert.equal(sent['access-control-allow-origin'], undefined)
  const again = await send('/api/session', { method: 'POST', body: JSON.stringify({ token }) })
  assert.deepEqual([again.status, JSON.parse(again.text).error], [401, 'token_used'])
  const other = new URL(inspector.createLink() ?? '').hash.slice('#token='.length)
  assert.notEqual(other, token)
  assert.equal(
    (await send('/api/session', { method: 'POST', body: JSON.stringify({ token: other }) })).status,
    200,
  )
})

test('another host, as after DNS rebinding, and another origin get 403 without a body', async (t) => {
  const started = await start(t)
  const { send, port, token } = started
  const headers = await openSession(started)
  const foreign = [
    { host: `rebound.example:${port}` },
    { host: '127.0.0.1' },
    { host: `127.0.0.1.example:${port}` },
    { host: `0.0.0.0:${port}` },
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: `http://127.0.0.1:${port + 1}` },
    { origin: `https://127.0.0.1:${port}` },
    { origin: `http://localhost:${port}` },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ]
  for (const extra of foreign)
    for (const path of ['/api/info', '/api/requests', '/api/events', '/api/har']) {
      const { status, text } = await send(path, {
        headers: { ...headers, ...extra } as Record<string, string>,
      })
      assert.deepEqual([path, status, text], [path, 403, ''], JSON.stringify(extra))
    }
  for (const extra of foreign.slice(0, 9)) {
    const sent = extra as Record<string, string>
    assert.equal((await send('/', { headers: sent })).status, 403)
    const session = { method: 'POST', headers: sent, body: JSON.stringify({ token }) }
    assert.equal((await send('/api/session', session)).status, 403)
  }
  const preflight = await send('/api/info', {
    method: 'OPTIONS',
    headers: { origin: 'https://evil.example' },
  })
  assert.equal(preflight.status, 403)
  const own = { ...headers, host: `localhost:${port}`, origin: `http://localhost:${port}` }
  assert.equal((await send('/api/info', { headers: own })).status, 200)
})

test('the page is sent with a strict policy, and no path leads to other files', async (t) => {
  const { send } = await start(t)
  const { status, text, headers } = await send('/')
  assert.equal(status, 200)
  const policy = String(headers['content-security-policy'])
  const [, nonce = ''] = /nonce="([\w-]+)"/.exec(text) ?? []
  assert.ok(policy.includes(`'nonce-${nonce}'`))
  assert.match(policy, /default-src 'none'; script-src 'self';/)
  assert.match(policy, /frame-ancestors 'none'/)
  assert.equal(headers['x-content-type-options'], 'nosniff')
  assert.equal(headers['cache-control'], 'no-store')
  assert.equal((await send('/assets/main.js')).text, 'main()')
  for (const path of [
    '/../package.json',
    '/%2e%2e/package.json',
    '/assets',
    '//x/index.html',
    '/constructor',
  ])
    assert.equal((await send(path)).status, 404, path)
  assert.equal((await send('/', { method: 'POST' })).status, 405)
})

test('the next port is used if 4040 is not free, and a browser gets no new link', async (t) => {
  const first = await start(t)
  const second = await start(t)
  assert.notEqual(first.port, second.port)
  assert.ok(second.port >= 4040)
  const headers = await openSession(second)
  assert.equal((await second.send('/api/link', { method: 'POST', headers })).status, 404)
})

test('connections that send no whole request are closed, so that others do not keep the user out', async (t) => {
  const started = await start(t)
  const headers = await openSession(started)
  const parts = ['', 'GET / HTTP/1.1\r\n', 'POST /api/session HTTP/1.1\r\nContent-Length: 9\r\n']
  let open = 0
  for (let index = 0; index < CONNECTIONS_MAX; index += 1) {
    const socket = connect(started.port, '127.0.0.1')
    atEnd(t, () => socket.destroy())
    socket.on('error', () => undefined).resume()
    socket.once('close', () => {
      open -= 1
    })
    const part = parts[index % parts.length] ?? ''
    socket.write(part.startsWith('POST') ? `${part}Host: 127.0.0.1:${started.port}\r\n\r\n` : part)
    open += 1
  }
  await until('all are closed', () => open === 0)
  assert.equal((await started.send('/api/info', { headers })).status, 200)
})

test('requests that are not valid are rejected with what is wrong', async (t) => {
  const started = await start(t)
  const headers = await openSession(started)
  const cases: [string, Sent, number, RegExp][] = [
    ['/api/nothing', {}, 404, /no such path/],
    ['/api/requests/abcd-1', {}, 404, /Only the last ones are kept/],
    ['/api/info', { method: 'PUT' }, 405, /does not support/],
    ['/api/requests?limit=0', {}, 400, /expected 1 to 500/],
    ['/api/requests?kind=ftp', {}, 400, /expected http, websocket, sse/],
    [`/api/requests?search=${'x'.repeat(501)}`, {}, 400, /at most 500/],
    ['/api/requests/a-1/replay', { method: 'POST', body: '[]' }, 400, /JSON object/],
    ['/api/requests/a-1/replay', { method: 'POST', body: '{"host":"x"}' }, 400, /Unknown member "host"/],
    ['/api/requests/a-1/signature', { method: 'POST', body: '{"scheme":"x"}' }, 400, /expected stripe/],
    ['/api/session', { method: 'POST', body: `"${'x'.repeat(2 * 1024 * 1024)}"` }, 413, /more than/],
  ]
  for (const [path, sent, expected, message] of cases) {
    const { status, text } = await started.send(path, { ...sent, headers })
    assert.equal(status, expected, path)
    assert.match(JSON.parse(text).message, message)
  }
})
