// Streams of one tunnel do not wait for each other: a reader that stops blocks only its own transfer.
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { after, test } from 'node:test'
import { connectClient, startTunneled } from '../../support/edges/tunneled.ts'
import { fetchHost } from '../../support/edges/tunnels.ts'
import { until } from '../../support/until.ts'

const OTHERS = 50
const ADDED_MAX_MS = 300
/** Other processes can disturb a round; a tunnel that blocks fails every round. */
const ROUNDS = 15
/** What all buffers and windows between writer and reader may hold. */
const BUFFERED_MAX = 64_000_000
const CHUNK = Buffer.alloc(64 * 1024, 'x')

let written = 0
const { edge, host } = await startTunneled(
  { after },
  {
    '/endless': (_request, response) => writeEndlessly(response),
    '/unread': (request) => void request.socket.pause(),
  },
)

/** Writes whenever there is room. */
function writeEndlessly(to: ServerResponse | Socket): void {
  const write = () => {
    while (!to.destroyed) {
      written += CHUNK.length
      if (!to.write(CHUNK)) return void to.once('drain', write)
    }
  }
  write()
}

/** The milliseconds of the slowest of many simultaneous requests. */
async function measureSlowest(): Promise<number> {
  const times = Array.from({ length: OTHERS }, async (_, index) => {
    const startedAt = performance.now()
    const { body } = await fetchHost(edge, host, { path: `/${index}` })
    assert.equal(String(body), `/${index}`)
    return performance.now() - startedAt
  })
  return Math.max(...(await Promise.all(times)))
}

/** Waits until nothing has been written for a while, because every buffer is full. */
async function untilBlocked(): Promise<void> {
  let before = -1
  let since = performance.now()
  await until(
    'the writer is blocked',
    () => {
      if (written !== before) since = performance.now()
      before = written
      return performance.now() - since > 200
    },
    20_000,
  )
  assert.ok(written > 0 && written < BUFFERED_MAX, `${written} bytes are buffered`)
}

const transfers: Record<string, () => Socket> = {
  'a client that does not read its download'() {
    const { socket } = connectClient(edge.port, `GET /endless HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
    return socket.pause()
  },
  'a local server that does not read an upload'() {
    const head = `POST /unread HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 1000000000000\r\n\r\n`
    const { socket } = connectClient(edge.port, head)
    writeEndlessly(socket)
    return socket
  },
}

for (const [what, begin] of Object.entries(transfers))
  test(`${what} delays no other request by more than 300 ms, and what is buffered is limited`, async (t) => {
    await measureSlowest()
    for (let round = 1; ; round++) {
      const before = await measureSlowest()
      written = 0
      const stalled = begin()
      await untilBlocked()
      const during = await measureSlowest()
      stalled.destroy()
      const text = `${Math.round(before)} ms before, ${Math.round(during)} ms during it`
      t.diagnostic(`${text}; ${written} bytes buffered`)
      if (during < before + ADDED_MAX_MS) return
      assert.ok(round < ROUNDS, text)
    }
  })
