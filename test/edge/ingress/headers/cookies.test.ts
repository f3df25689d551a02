// Cookies are confined to the host of their tunnel, because other hosts under the domain belong to other
// workspaces.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openRawTunnel, startStandaloneEdge } from '../../../support/edges/standalone-edge.ts'
import { sendRaw } from '../../../support/network/raw.ts'

const COOKIES: Record<string, string> = {
  'Set-Cookie: a=1; Domain=tunnels.test; Path=/': 'Set-Cookie: a=1; Path=/',
  'set-cookie: a=1;domain=.acme.tunnels.test': 'set-cookie: a=1',
  'SET-COOKIE: a=1; DOMAIN\t=\ttunnels.test ; Secure': 'SET-COOKIE: a=1; Secure',
  'Set-Cookie: a=1;Domain=a.test;HttpOnly; domain=b.test': 'Set-Cookie: a=1;HttpOnly',
  'Set-Cookie: a=1; Domain; Domain=; SameSite=Lax': 'Set-Cookie: a=1; SameSite=Lax',
  'Set-Cookie: a=1; "Domain"=tunnels.test': 'Set-Cookie: a=1',
  // Not the Domain attribute of a cookie.
  'Set-Cookie: Domain=tunnels.test; Path=/': 'Set-Cookie: Domain=tunnels.test; Path=/',
  'Set-Cookie: a=domain=x; Path=/domain=x; Expires=Wed, 21 Oct 2037 07:28:00 GMT':
    'Set-Cookie: a=domain=x; Path=/domain=x; Expires=Wed, 21 Oct 2037 07:28:00 GMT',
  'X-Cookie: a=1; Domain=tunnels.test': 'X-Cookie: a=1; Domain=tunnels.test',
}
const HEADERS = `${Object.keys(COOKIES).join('\r\n')}\r\n`

test('the Domain of every cookie is removed, in responses and in upgrades', async (t) => {
  const { edge, keys } = await startStandaloneEdge(t, ['acme'])
  const upgrade = 'Connection: Upgrade\r\nUpgrade: x\r\n'
  for (const [status, requestHeaders, tunnelResponse] of [
    [200, 'Connection: close\r\n', `HTTP/1.1 200 OK\r\n${HEADERS}Content-Length: 0\r\n\r\n`],
    [403, upgrade, `HTTP/1.1 403 No\r\n${HEADERS}Content-Length: 0\r\n\r\n`],
    [101, upgrade, `HTTP/1.1 101 Switching Protocols\r\n${upgrade}${HEADERS}\r\n`],
  ] as const) {
    const { host, respond, close } = await openRawTunnel(edge, keys[0] as string)
    respond(tunnelResponse)
    const response = await sendRaw(
      edge.url,
      `GET / HTTP/1.1\r\nHost: ${host}\r\n${requestHeaders}\r\n`,
      1_000,
    )
    assert.equal(response.status, status)
    const cookies = response.head.split('\r\n').filter((line) => /cookie:/i.test(line))
    assert.deepEqual(cookies, Object.values(COOKIES), String(status))
    close()
  }
})

test('cookies in informational responses and trailers are not proxied', async (t) => {
  const { edge, keys } = await startStandaloneEdge(t, ['acme'])
  const { host, respond } = await openRawTunnel(edge, keys[0] as string)
  respond(
    `HTTP/1.1 103 Early Hints\r\n${HEADERS}\r\nHTTP/1.1 200 OK\r\nTrailer: Set-Cookie\r\n` +
      `Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n${HEADERS}\r\n`,
  )
  const { head, body } = await sendRaw(
    edge.url,
    `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
  )
  assert.match(body, /ok/)
  assert.doesNotMatch(head + body, /set-cookie/i)
})
