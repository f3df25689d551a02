// Writes with a cookie are accepted from the dashboard's own origin only: scheme, host and port.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apis } from '../../../src/contract/apis.ts'
import type { Operation } from '../../../src/contract/operation.ts'
import { addMember, serveWithOwner, type TestBrowser } from '../../support/accounts/users.ts'
import { serve } from '../../support/api/server.ts'
import { sendRaw } from '../../support/network/raw.ts'

const cookieHeader = ({ cookies }: TestBrowser) =>
  [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')

const rename = (browser: TestBrowser, headers: Record<string, string>) =>
  browser.call('POST', '/account/name', { name: 'Forged' }, headers)

test('a write without a host, with two hosts or with an opaque origin is rejected', async (t) => {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  const { host } = new URL(server.url)
  const body = '{"name":"Forged"}'
  const send = (version: string, headers: string[]) =>
    sendRaw(
      server.url,
      [
        `POST ${apis.dashboard.prefix}/account/name HTTP/${version}`,
        ...headers,
        `Cookie: ${cookieHeader(ann)}`,
        'Content-Type: application/json',
        `Content-Length: ${body.length}`,
        'Connection: close',
        '',
        body,
      ].join('\r\n'),
    )
  assert.equal((await send('1.0', ['Origin: null'])).status, 403, 'no host, opaque origin')
  assert.equal((await send('1.0', [`Origin: ${server.url}`])).status, 403, 'no host')
  assert.equal((await send('1.0', ['Host: ', 'Origin: null'])).status, 403, 'an empty host')
  assert.equal((await send('1.1', [`Host: ${host}`, 'Origin: null'])).status, 403)
  assert.equal((await send('1.1', [`Host: ${host}`, `Host: ${host}`, `Origin: ${server.url}`])).status, 400)
  assert.equal((await send('1.1', [`Host: ${host}, ${host}`, `Origin: ${server.url}`])).status, 400)
  assert.equal(
    (await send('1.1', [`Host: ${host}`, `Origin: ${server.url}`, `Origin: ${server.url}`])).status,
    403,
    'two origins',
  )
  assert.equal((await ann.get('/session')).json.user.name, 'Ann')
  assert.equal((await send('1.0', [`Host: ${host}`, `Origin: ${server.url}`])).status, 200)
})

test('with a configured base URL only its origin is accepted, for any Host header', async (t) => {
  const { server, ann } = await serveWithOwner(t, {
    engine: 'sqlite',
    env: { ADIT_BASE_URL: 'https://adit.example.com/at' },
  })
  for (const origin of [
    server.url,
    'http://adit.example.com',
    'https://adit.example.com:8443',
    'https://adit.example.com.evil.example',
    'https://adit.example.com/at',
  ]) {
    const { status, json } = await rename(ann.browser, { origin })
    assert.equal(status, 403, origin)
    assert.match(json.message, /https:\/\/adit\.example\.com/, 'the message names the right URL')
  }
  assert.equal((await rename(ann.browser, { origin: 'https://adit.example.com' })).status, 200)
})

test('without a base URL the scheme is checked too, and only a trusted proxy may set it', async (t) => {
  const direct = await serve(t, { engine: 'sqlite' })
  const ann = await addMember(direct, 'Ann', 'owner')
  const https = direct.url.replace('http:', 'https:')
  const forwarded = { 'x-forwarded-proto': 'https' }
  assert.equal((await rename(ann.browser, { origin: https })).status, 403)
  assert.equal((await rename(ann.browser, { origin: https, ...forwarded })).status, 403, 'untrusted proxy')
  const behind = await serve(t, { engine: 'sqlite', env: { ADIT_TRUSTED_PROXIES: '127.0.0.1' } })
  const bob = await addMember(behind, 'Bob', 'owner')
  const secure = behind.url.replace('http:', 'https:')
  assert.equal((await rename(bob.browser, { origin: secure, ...forwarded })).status, 200)
  assert.equal((await rename(bob.browser, { origin: behind.url, ...forwarded })).status, 403)
  assert.equal((await rename(bob.browser, { origin: secure, 'x-forwarded-proto': 'gopher' })).status, 403)
  assert.equal((await rename(bob.browser, { origin: behind.url })).status, 200, 'a proxy without the header')
})

test('every write operation rejects other origins', async (t) => {
  const { ann } = await serveWithOwner(t, { engine: 'sqlite' })
  for (const { id, method, path } of apis.dashboard.operations as readonly Operation[]) {
    if (method === 'GET') continue
    const to = path.replace('{workspace}', 'acme').replace('{id}', ann.id)
    for (const headers of [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }])
      assert.equal((await ann.call(method, to, undefined, headers)).status, 403, id)
  }
  assert.equal((await ann.get('/session')).status, 200)
})

test('the return from the identity provider must be a top-level navigation', async (t) => {
  const env = {
    ADIT_BASE_URL: 'https://adit.example.com',
    ADIT_OIDC_ISSUER: 'http://127.0.0.1:9',
    ADIT_OIDC_CLIENT_ID: 'adit',
    ADIT_OIDC_CLIENT_SECRET: 'shared with the provider',
  }
  const server = await serve(t, { engine: 'sqlite', env })
  const path = `${apis.dashboard.prefix}/sign-in/sso/return?error=access_denied`
  const come = (headers: Record<string, string>, method = 'GET') =>
    fetch(server.url + path, { method, headers, redirect: 'manual' })
  assert.equal((await come({ 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'document' })).status, 302)
  assert.equal((await come({})).status, 302, 'a browser without the header')
  for (const dest of ['image', 'empty', 'iframe', 'script'])
    assert.equal((await come({ 'sec-fetch-dest': dest })).status, 403, dest)
  assert.equal((await come({}, 'HEAD')).status, 403)
})
