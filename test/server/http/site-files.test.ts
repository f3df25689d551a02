// Files that browsers, crawlers and researchers try on any site, and the headers of pages.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { projectFileSchema } from '../../../src/contract/project-file.ts'
import { readConfig } from '../../../src/server/config/server.ts'
import { serve } from '../../support/api/server.ts'

const env = { ADIT_BASE_URL: 'https://adit.test/base', ADIT_SECURITY_CONTACT: 'mailto:security@example.com' }
const plain = await serve({ after }, { engine: 'sqlite' })
const secure = await serve({ after }, { engine: 'sqlite', env })

const get = async (url: string) => {
  const response = await fetch(url, { redirect: 'manual' })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

test('security.txt has the contact of the operator and expires within a year; without one it is 404', async () => {
  const { status, headers, text } = await get(`${secure.url}/.well-known/security.txt`)
  assert.deepEqual([status, headers.get('content-type')], [200, 'text/plain; charset=utf-8'])
  assert.match(
    text,
    /^Contact: mailto:security@example\.com\nExpires: (.+)\nCanonical: https:\/\/adit\.test\/base\//,
  )
  const expires = Date.parse(/^Expires: (.+)$/m.exec(text)?.[1] ?? '')
  assert.ok(expires > Date.now() && expires < Date.now() + 365 * 86_400_000)
  assert.equal((await get(`${plain.url}/.well-known/security.txt`)).text, '{"error":"not_found"}')
  for (const contact of ['security@example.com', 'http://example.com', 'mailto:x', 'javascript:alert(1)'])
    assert.throws(() => readConfig({ ADIT_SECURITY_CONTACT: contact }), /ADIT_SECURITY_CONTACT/, contact)
  assert.doesNotMatch(
    readConfig({ ADIT_SECURITY_CONTACT: 'https://e.com/a\nX: y' }).securityContact ?? '',
    /\n/,
  )
})

test('crawlers are asked to stay away, and browsers find an icon and the page for passwords', async () => {
  assert.equal((await get(`${plain.url}/robots.txt`)).text, 'User-agent: *\nDisallow: /\n')
  const icon = await get(`${plain.url}/favicon.ico`)
  assert.deepEqual([icon.status, icon.headers.get('content-type')], [200, 'image/svg+xml'])
  assert.match(icon.text, /^<svg/)
  for (const [{ url }, location] of [
    [plain, '/account'],
    [secure, '/base/account'],
  ] as const) {
    const { status, headers } = await get(`${url}/.well-known/change-password`)
    assert.deepEqual([status, headers.get('location')], [302, location])
  }
})

test('editors get the schema of adit.json without a key, from any origin', async () => {
  const { status, headers, text } = await get(`${plain.url}/adit.schema.json`)
  assert.deepEqual([status, headers.get('content-type')], [200, 'application/schema+json; charset=utf-8'])
  assert.deepEqual(
    [headers.get('cache-control'), headers.get('access-control-allow-origin')],
    ['public, max-age=86400', '*'],
  )
  assert.equal(text, projectFileSchema)
})

test('files of the dashboard are compressed and revalidated by RFC 9110', async () => {
  const [, path] = /(?:src|href)="[^"]*?(assets\/[^"]+\.js)"/.exec((await get(`${plain.url}/`)).text) ?? []
  const url = `${plain.url}/${path}`
  const encodingFor = async (accepted: string) =>
    (await fetch(url, { headers: { 'accept-encoding': accepted } })).headers.get('content-encoding')
  assert.equal(await encodingFor('gzip, br'), 'br')
  assert.equal(await encodingFor('*'), 'br')
  assert.equal(await encodingFor('br;q=0, *'), 'gzip')
  assert.equal(await encodingFor('br;q=0, gzip;q=0.0'), null)
  const { headers } = await fetch(url)
  const etag = headers.get('etag') as string
  for (const known of [etag, `"other", ${etag}`, `W/${etag}`, '*'])
    assert.equal((await fetch(url, { headers: { 'if-none-match': known } })).status, 304, known)
  assert.equal((await fetch(url, { headers: { 'if-none-match': '"other"' } })).status, 200)
})

test('pages are isolated from windows of other origins, and may not use devices', async () => {
  for (const path of ['/', '/sign-in', '/docs', '/account']) {
    const { status, headers } = await get(secure.url + path)
    assert.equal(status, 200, path)
    assert.equal(headers.get('cross-origin-opener-policy'), 'same-origin')
    assert.match(headers.get('permissions-policy') ?? '', /camera=\(\).*microphone=\(\)/)
    assert.equal(headers.get('strict-transport-security'), 'max-age=31536000')
    assert.equal((await get(plain.url + path)).headers.get('strict-transport-security'), null)
  }
})
