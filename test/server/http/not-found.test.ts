// Unknown paths: the dashboard's 404 page in a browser, JSON for programs and under the APIs.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { serve } from '../../support/api/server.ts'
import { root } from '../../support/processes/process.ts'

const { url } = await serve({ after }, { engine: 'sqlite' })

const BROWSER = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' }

async function get(target: string, init: RequestInit = { headers: BROWSER }) {
  const response = await fetch(target, init)
  const type = response.headers.get('content-type')?.split(';', 1)[0]
  return { status: response.status, type, headers: response.headers, body: await response.text() }
}

test('an unknown path shows the 404 page in a browser, under the policy of the dashboard', async () => {
  const home = await get(`${url}/`)
  for (const path of [
    '/login',
    '/nope',
    '/settings?tab=1',
    '/w',
    '/w/acme/nope',
    '/assets/nope',
    '/docs/nope',
    '/apiary',
  ]) {
    const { status, type, headers, body } = await get(url + path)
    assert.deepEqual([status, type], [404, 'text/html'], path)
    assert.match(headers.get('content-security-policy') ?? '', /script-src 'self'; style-src 'self' 'nonce-/)
    assert.equal(headers.get('cache-control'), 'no-store')
    assert.equal(
      body.replace(/csp-nonce" content="[^"]*"/, ''),
      home.body.replace(/csp-nonce" content="[^"]*"/, ''),
    )
  }
  const head = await get(`${url}/nope`, { method: 'HEAD', headers: BROWSER })
  assert.deepEqual([head.status, head.type, head.body], [404, 'text/html', ''])
})

test('an unknown path is a JSON error under the APIs, and for clients that do not accept HTML', async () => {
  const notFound = { status: 404, type: 'application/json', body: '{"error":"not_found"}' }
  const pick = ({ status, type, body }: Awaited<ReturnType<typeof get>>) => ({ status, type, body })
  for (const path of [
    '/api',
    '/api/nope',
    '/api/v1/nope',
    '/edge',
    '/edge/nope',
    '/edge/v1/nope',
    '/workspace/v1/nope',
    '/device/nope',
    '/dashboard/api',
    '/dashboard/api/nope',
    '/mcp/nope',
    '/%61pi/v1/nope',
    '/api/v1/%',
    '/api/v1/%ff',
    '/api/v1/tokens/%zz',
    '/edge/v1/%',
    '/device/%zz',
    '/dashboard/api/%c3%28',
    '/mcp/%',
    '/docs/%',
    '/assets/%zz',
    '/.well-known/%',
    '/%',
  ])
    assert.deepEqual(pick(await get(url + path)), notFound, path)
  assert.deepEqual(pick(await get(`${url}/nope`, {})), notFound)
  assert.deepEqual(pick(await get(`${url}/nope`, { headers: { accept: 'application/json' } })), notFound)
  assert.deepEqual(pick(await get(`${url}/nope`, { method: 'POST', headers: BROWSER, body: '{}' })), notFound)
})

test('every page of the dashboard is served with 200', async () => {
  const source = readFileSync(join(root, 'web/src/app.tsx'), 'utf8')
  const paths = [...source.matchAll(/\bpath(?:=|: )["']([^"']+)["']/g)].map(([, path = '']) => path)
  assert.ok(paths.length > 5)
  for (const path of paths) {
    const { status, type } = await get(url + path.replace(':workspace', 'acme'))
    assert.deepEqual([status, type], [200, 'text/html'], path)
  }
})
