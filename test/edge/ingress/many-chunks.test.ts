// Responses of many small chunks: thousands arrive in one buffer, faster than they can be sent.
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { after, test } from 'node:test'
import { connectClient, startTunneled } from '../../support/edges/tunneled.ts'

/** Enough that buffers become full between two small chunks. */
const REPEATS = 600
const LARGE = 'x'.repeat(40_000)
const SMALL_CHUNKS = 100
const BODY = (LARGE + 'ab'.repeat(SMALL_CHUNKS)).repeat(REPEATS)

const { edge, host } = await startTunneled(
  { after },
  { '/chunks': (_request, response) => respond(response) },
)

function respond({ socket }: ServerResponse): void {
  const large = `${LARGE.length.toString(16)}\r\n${LARGE}\r\n`
  const chunks = `${large}${'2\r\nab\r\n'.repeat(SMALL_CHUNKS)}`.repeat(REPEATS)
  socket?.write(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`)
}

async function request(headers: string): Promise<string> {
  const head = `GET /chunks HTTP/1.1\r\nHost: ${host}\r\n${headers}\r\n\r\n`
  const { socket, received, closed } = connectClient(edge.port, head)
  // Slower than the edge sends.
  socket.on('data', () => {
    socket.pause()
    setTimeout(() => socket.resume(), 1)
  })
  await closed
  const body = received().slice(received().indexOf('\r\n\r\n') + 4)
  return /^transfer-encoding: chunked/im.test(received()) ? decode(body) : body
}

function decode(body: string): string {
  const parts: string[] = []
  for (let at = 0; at < body.length; ) {
    const dataAt = body.indexOf('\r\n', at) + 2
    const end = dataAt + Number.parseInt(body.slice(at, dataAt), 16)
    parts.push(body.slice(dataAt, end))
    at = end + 2
  }
  return parts.join('')
}

test('responses of many small chunks arrive unchanged, and the edge prints no warning', async () => {
  assert.ok((await request('Connection: close')) === BODY, 'a request')
  assert.ok((await request('Connection: Upgrade\r\nUpgrade: test')) === BODY, 'an upgrade that is declined')
  edge.child.kill()
  assert.doesNotMatch((await edge.ended).stderr, /warning/i)
})
