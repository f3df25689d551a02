// Files that browsers, crawlers and researchers try on any site, and the headers of pages.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
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
