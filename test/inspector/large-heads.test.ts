// Heads of 64 KiB are recorded whole, and lists of them stay small.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { LIMITS, type Replayed } from '../../src/inspector/api.ts'
import { connectClient } from '../support/edges/tunneled.ts'
import { until } from '../support/until.ts'
import { startInspected } from './support.ts'

const text = (bytes: number) => 'x'.repeat(bytes)

/** A local server whose responses have large headers, too. */
const startLarge = (t: Parameters<typeof startInspected>[0]) => {
  const server = createServer({ maxHeaderSize: 128 * 1024 }, (request, response) => {
    const many = Array.from({ length: 900 }, (_, index) => [`x-${index}`, text(50)]).flat()
    response.writeHead(200, ['x-seen', String(request.headers.cookie?.length), ...many]).end()
  })
  return startInspected(t, server)
}

test('heads of 64 KiB are recorded whole, shown and replayed', async (t) => {
  const { edge, tunnel, list, read, call } = await startLarge(t)
  const [path, cookie] = [`/${text(30_000)}`, `a=${text(35_000)}`]
  const client = connectClient(
    edge.port,
    `GET ${path} HTTP/1.1\r\nHost: ${tunnel.host}\r\nCookie: ${cookie}\r\nConnection: close\r\n\r\n`,
  )
  await client.closed
  assert.match(client.received(), /^HTTP\/1\.1 200 OK\r\nx-seen: 35002\r\n/)
  await until('the request is recorded', async () => (await list('status=2xx')).length === 1)
  const [listed] = await list()
  assert.equal(listed?.path, `${path.slice(0, LIMITS.listedChars)}…`)
  const id = listed?.id ?? assert.fail()
  const { state, path: recordedPath, request, response } = await read(id, 'reveal=true')
  assert.equal(state, 'complete')
  assert.equal(recordedPath, path)
  assert.equal(request.headers.find(({ name }) => name === 'Cookie')?.value, cookie)
  assert.equal(response?.headers.filter(({ name }) => /^x-\d+$/.test(name)).length, 900)

  const cookieAt = request.headers.findIndex(({ name }) => name === 'Cookie')
  const headers = [
    { name: 'Host', value: 'x' },
    { name: 'Cookie', recorded: cookieAt },
  ]
  const edited = { path: `${path}?edited`, headers }
  for (const edit of [{}, edited]) {
    const { request: replay } = await call<Replayed>(`/api/requests/${id}/replay`, 'POST', edit)
    const replayed = await read(replay.id, 'wait=30')
    assert.equal(replayed.response?.headers.find(({ name }) => name === 'x-seen')?.value, '35002')
  }
})
