// Error responses to visitors: their format, and what they say.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { chooseFormat, errorBody } from '../../../src/edge/error-responses/bodies.ts'
import { type CauseCode, causes } from '../../../src/edge/error-responses/causes.ts'
import { startStandaloneEdge } from '../../support/edges/standalone-edge.ts'
import { fetchHost, openTunnel } from '../../support/edges/tunnels.ts'
import { sendRaw } from '../../support/network/raw.ts'
import { freePort } from '../../support/processes/ports.ts'

const CHROME = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8'
const JSON_TYPE = 'application/json'

const { edge, keys, local } = await startStandaloneEdge({ after }, ['acme'])
const [key = ''] = keys
const open = (
  name: string,
  options: { port?: number; flags?: string[]; env?: Record<string, string> } = {},
) => openTunnel({ after }, { edge, key, port: local.port, name, ...options })
const [down, password, limited] = await Promise.all([
  open('down', { port: await freePort() }),
  open('password', { env: { ADIT_TUNNEL_BASIC_AUTH: 'ann:correct horse' } }),
  open('limited', { flags: ['--allow-ip', '10.0.0.0/8'] }),
])
const host = 'none.acme.tunnels.test'
const errors: [host: string, CauseCode][] = [
  [host, 'tunnel_not_found'],
  [down.host, 'unreachable'],
  [password.host, 'unauthorized'],
  [limited.host, 'forbidden'],
]
const forwarded = { 'x-forwarded-for': '203.0.113.9' }

test('errors are pages for browsers, JSON for clients that accept it, and plain text otherwise', async () => {
  for (const [host, code] of errors) {
    const { status, title, visitor, owner } = causes[code]
    const get = (accept?: string) =>
      fetchHost(edge, host, { headers: { ...forwarded, ...(accept && { accept }) } })
    const [page, json, text, curl] = await Promise.all([CHROME, JSON_TYPE, undefined, '*/*'].map(get))
    assert.ok(page && json && text && curl)
    for (const response of [page, json, text, curl]) {
      assert.equal(response.status, status)
      assert.equal(response.headers['cache-control'], 'no-store')
      assert.equal(response.headers.vary, 'Accept')
      assert.equal(Number(response.headers['content-length']), response.body.length)
    }
    assert.equal(page.headers['content-type'], 'text/html; charset=utf-8')
    assert.match(
      String(page.headers['content-security-policy']),
      /^default-src 'none'; style-src 'sha256-\S+'; /,
    )
    assert.match(String(page.body), new RegExp(`^<!doctype html><html lang="en">.*<h1>${title}</h1>`))
    assert.doesNotMatch(String(page.body), /<script|src=|href=|url\(|@import/)
    assert.equal(json.headers['content-type'], JSON_TYPE)
    const { error, message, ...advice } = JSON.parse(String(json.body))
    assert.deepEqual([error, advice], [code, { visitor, owner }])
    assert.ok(message.startsWith(`${title}.`))
    assert.equal(text.headers['content-type'], 'text/plain; charset=utf-8')
    assert.ok(String(text.body).startsWith(`${title}.`) && String(text.body).includes(`\n${visitor}\n`))
    assert.deepEqual(curl.body, text.body)
  }
})

test('the response to HEAD has no body, also if the request asks for an upgrade', async () => {
  for (const [host, code] of errors)
    for (const upgrade of ['', 'Connection: Upgrade\r\nUpgrade: x\r\n']) {
      const head = `HEAD / HTTP/1.1\r\nHost: ${host}\r\nX-Forwarded-For: 203.0.113.9\r\n`
      const { status, body } = await sendRaw(edge.url, `${head}${upgrade || 'Connection: close\r\n'}\r\n`)
      assert.deepEqual([status, body], [causes[code].status, ''])
    }
})

test('HTTP/1.0 gets a response that is not chunked, and the next request works after an unread body', async () => {
  const old = await sendRaw(edge.url, `GET / HTTP/1.0\r\nHost: ${host}\r\nAccept: text/html\r\n\r\n`)
  assert.equal(old.status, 404)
  assert.match(old.body, /^<!doctype html>.*<\/html>\n$/)
  assert.doesNotMatch(old.head, /transfer-encoding/i)
  const size = 200_000
  const post = `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${size}\r\n\r\n${'x'.repeat(size)}`
  const both = await sendRaw(edge.url, `${post}GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
  assert.equal(`${both.head}${both.body}`.match(/HTTP\/1\.1 404 /g)?.length, 2)
})

test('pages escape the host of the request, and shorten it', async () => {
  const markup = '<img/onerror=alert(1)>"&\''
  const get = async (host: string, accept: string) => {
    const { status, body } = await sendRaw(
      edge.url,
      `GET / HTTP/1.1\r\nHost: ${host}\r\nAccept: ${accept}\r\nConnection: close\r\n\r\n`,
    )
    assert.equal(status, 404)
    return body
  }
  const page = await get(markup, CHROME)
  assert.ok(page.includes('The host of the request is &lt;img/onerror=alert(1)&gt;&quot;&amp;&#39;.'), page)
  assert.ok(!page.includes('<img'))
  assert.ok(JSON.parse(await get(markup, JSON_TYPE)).message.includes(markup))
  assert.ok((await get('x'.repeat(8_000), '*/*')).length < 1_000)
})

test('the format is the first known one of those that Accept prefers most', () => {
  const expected: [accept: string, format: string][] = [
    ['', 'text'],
    ['*/*', 'text'],
    ['text/*', 'text'],
    [CHROME, 'html'],
    ['TEXT/HTML', 'html'],
    ['application/json, text/plain, */*', 'json'],
    ['text/plain, application/json', 'text'],
    ['text/html;q=0.5, application/json', 'json'],
    ['text/html ; charset=utf-8 ; q=0.9, application/json;q=0.1', 'html'],
    ['text/html;q=0, */*', 'text'],
    ['text/html;q=x', 'text'],
    ['constructor, __proto__', 'text'],
    ['text/html'.padStart(5_000, 'x,'), 'text'],
  ]
  for (const [accept, format] of expected) assert.equal(chooseFormat(accept), format, accept)
})

test('every cause has a title and two texts, and a page of less than 4 kB', () => {
  for (const [code, { title, visitor, owner }] of Object.entries(causes)) {
    assert.ok(!title.endsWith('.'), code)
    for (const text of [visitor, owner]) assert.match(text, /^[A-Z].*\.$/, code)
    assert.ok(errorBody({ cause: code as CauseCode }, 'text/html').body.length < 4_096, code)
  }
})
