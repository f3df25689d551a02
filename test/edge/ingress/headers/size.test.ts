// Heads of up to 64 KiB pass in both directions, and larger ones are rejected.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startRawLocalServer } from '../../../support/edges/raw-local-server.ts'
import { startStandaloneEdge } from '../../../support/edges/standalone-edge.ts'
import { connectClient } from '../../../support/edges/tunneled.ts'
import { openTunnel } from '../../../support/edges/tunnels.ts'
import { until } from '../../../support/until.ts'

const HEAD_BYTES_MAX = 64 * 1024

const { edge, keys } = await startStandaloneEdge({ after }, ['acme'])
const [key = ''] = keys
const local = await startRawLocalServer({ after })
const { host } = await openTunnel({ after }, { edge, key, port: local.port, name: 'app' })

const UPGRADE = 'Connection: Upgrade\r\nUpgrade: x\r\n'
/**
 * Fills a head up to the given size, the empty line included, with what `fill` makes of a number of
 * characters.
 */
function headOf(bytes: number, fill: (chars: string) => string): string {
  const filled = fill('x'.repeat(bytes - fill('').length))
  assert.equal(filled.length, bytes)
  return filled
}
const hostLine = `Host: ${host}\r\n`
const requests: Record<string, (chars: string) => string> = {
  'a path': (chars) => `GET /${chars} HTTP/1.1\r\n${hostLine}\r\n`,
  'a header': (chars) => `GET / HTTP/1.1\r\n${hostLine}Cookie: a=${chars}\r\n\r\n`,
  '190 headers': (chars) =>
    `GET / HTTP/1.1\r\n${hostLine}${Array.from({ length: 190 }, (_, index) => `x-${index}: 1\r\n`).join('')}` +
    `X-Last: ${chars}\r\n\r\n`,
  'an upgrade': (chars) => `GET / HTTP/1.1\r\n${hostLine}${UPGRADE}X-Large: ${chars}\r\n\r\n`,
}

for (const [what, fill] of Object.entries(requests))
  test(`the head of a request has up to 64 KiB: ${what}`, async () => {
    const client = connectClient(edge.port, headOf(HEAD_BYTES_MAX, fill))
    const { socket, received } = await local.next()
    assert.match(received(), /x{60000}/)
    socket.end('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
    await until('the response arrives', () => client.received().startsWith('HTTP/1.1 200 OK\r\n'))

    // Node does not count separators.
    const before = local.count()
    const larger = connectClient(edge.port, headOf(HEAD_BYTES_MAX + 2_000, fill))
    assert.equal(await larger.closed, 'end')
    assert.match(larger.received(), /^HTTP\/1\.1 431 [\s\S]*The request headers are too large/)
    assert.equal(local.count(), before)
    for (const { socket } of [client, larger]) socket.destroy()
  })

const responses: Record<string, (chars: string) => string> = {
  'a header': (chars) =>
    `HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\nX-Large: ${chars}\r\n\r\n`,
  '990 headers': (chars) =>
    `HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n` +
    `${Array.from({ length: 990 }, (_, index) => `Set-Cookie: a${index}=${'y'.repeat(30)}\r\n`).join('')}` +
    `X-Last: ${chars}\r\n\r\n`,
}

for (const [what, fill] of Object.entries(responses))
  for (const pieces of [1, 700])
    test(`the head of a response has up to 64 KiB, in ${pieces} pieces: ${what}`, async () => {
      const respond = async (bytes: number) => {
        const accept = 'Accept: application/json\r\nConnection: close\r\n'
        const client = connectClient(edge.port, `GET / HTTP/1.1\r\n${hostLine}${accept}\r\n`)
        const { socket } = await local.next()
        const head = headOf(bytes, fill)
        const size = Math.ceil(bytes / pieces)
        for (let at = 0; at < bytes; at += size)
          await new Promise((sent) => socket.write(head.slice(at, at + size), sent))
        await client.closed
        client.socket.destroy()
        return client.received()
      }
      const received = await respond(HEAD_BYTES_MAX)
      assert.match(received, /^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\nX-La(rge|st): x+\r\n/)
      if (what === '990 headers') assert.equal(received.match(/^Set-Cookie: /gm)?.length, 990)
      const rejected = await respond(HEAD_BYTES_MAX + 100)
      assert.match(rejected, /^HTTP\/1\.1 502 Bad Gateway\r\n[\s\S]*"error":"head_too_large"/)
    })

test('the head of a response to an upgrade has up to 64 KiB', async () => {
  const client = connectClient(edge.port, `GET / HTTP/1.1\r\n${hostLine}${UPGRADE}\r\n`)
  const { socket } = await local.next()
  socket.write(headOf(HEAD_BYTES_MAX, (chars) => `HTTP/1.1 101 OK\r\n${UPGRADE}X-Large: ${chars}\r\n\r\n`))
  socket.end('bytes')
  await client.closed
  assert.match(client.received(), /^HTTP\/1\.1 101 OK\r\n[\s\S]*X-Large: x{60000}[\s\S]*\r\n\r\nbytes$/)
  client.socket.destroy()
})
