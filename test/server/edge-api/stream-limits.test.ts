// Limits of change streams per edge and per node.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { test } from 'node:test'
import { createControlPlane, startVerifier } from '../../../src/edge-sdk/index.ts'
import { hashSecret } from '../../../src/lib/credentials/secret.ts'
import { ChangeStreams } from '../../../src/server/http/api/change-streams.ts'
import { addEdge, serve, serveWithEdge } from '../../support/api/server.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { collectText } from '../../support/network/collect.ts'
import { until } from '../../support/until.ts'

const PER_EDGE = 8
const PER_NODE = 1_000

/** A stream, once the server has responded; collects what it receives. */
async function open(t: Test, url: string, token: string) {
  const request = get(`${url}/edge/v1/key-changes`, {
    headers: { authorization: `Bearer ${token}` },
    agent: false,
  })
  atEnd(t, () => request.destroy())
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const received = collectText(response)
  response.on('error', () => {})
  return {
    status: response.statusCode,
    retryAfter: response.headers['retry-after'],
    received,
    isOver: () => response.complete,
    disconnect: () => request.destroy(),
  }
}

test('an edge with too many streams loses the oldest, with a reason; the others continue', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const [edge, other] = [await addEdge(server, 'busy'), await addEdge(server, 'other')]
  const unrelated = await open(t, server.url, other.token)
  const streams: Awaited<ReturnType<typeof open>>[] = []
  for (let index = 0; index < PER_EDGE; index++) streams.push(await open(t, server.url, edge.token))
  const [oldest, ...rest] = streams as [(typeof streams)[number]]
  await until('all are up to date', () => streams.every(({ received }) => received().includes('id: ')))
  const latest = await open(t, server.url, edge.token)
  await until('the oldest has ended', oldest.isOver)
  assert.match(oldest.received(), /event: closed\ndata: \{"message":"[^"]*8 streams[^"]*"\}\n\n$/)
  const { id, token } = (await server.post('/tokens', {})).json
  await server.call('DELETE', `/tokens/${id}`)
  const hasReceived = ({ received, isOver }: typeof latest) =>
    received().includes(hashSecret(token)) && !isOver()
  await until('the others receive a revocation', () => [...rest, latest, unrelated].every(hasReceived))
})

test('an edge is not locked out by streams that it no longer reads', async (t) => {
  const { server, edge } = await serveWithEdge(t, { engine: 'sqlite' })
  const { hostname, port } = new URL(server.url)
  for (let index = 0; index < 5 * PER_EDGE; index++) {
    const dead = connect(Number(port), hostname)
    dead.on('error', () => {})
    atEnd(t, () => dead.destroy())
    dead.write(
      `GET /edge/v1/key-changes HTTP/1.1\r\nHost: adit\r\nAuthorization: Bearer ${edge.token}\r\n\r\n`,
    )
    await once(dead, 'readable')
  }
  const stream = await open(t, server.url, edge.token)
  assert.equal(stream.status, 200)
  await until('it is up to date', () => stream.received().includes('id: '))
})

test('a full node closes a stream of the edge that has the most for an edge that has none', async (t) => {
  // One address has at most 500 connections, unless it is that of a proxy.
  const server = await serve(t, { engine: 'sqlite', env: { ADIT_TRUSTED_PROXIES: '127.0.0.1' } })
  const streams: Awaited<ReturnType<typeof open>>[] = []
  const edges = []
  for (let index = 0; index < PER_NODE / PER_EDGE; index++) edges.push(await addEdge(server, `edge-${index}`))
  for (const { token } of edges)
    streams.push(...(await Promise.all(Array.from({ length: PER_EDGE }, () => open(t, server.url, token)))))
  assert.ok(streams.every(({ status }) => status === 200))
  const late = await addEdge(server, 'late')
  const accepted = await open(t, server.url, late.token)
  assert.equal(accepted.status, 200)
  await until('one stream of another edge is closed', () => streams.some(({ isOver }) => isOver()))
  const [closed, ...others] = streams.filter(({ isOver }) => isOver())
  assert.match(closed?.received() ?? '', /event: closed\ndata: \{"message":"[^"]*1000 in total/)
  assert.deepEqual(others, [])
  const again = await open(t, server.url, edges[0]?.token as string)
  assert.equal(again.status, 200)
})

test('a node that is full of edges with one stream each rejects further edges until one ends', () => {
  const { signal: closing } = new AbortController()
  const replaced: string[] = []
  const streams = new ChangeStreams({ closing, onReplaced: (edgeId) => replaced.push(edgeId) })
  const openStream = (edgeId: string) => streams.open(edgeId, async function* () {})
  const [first] = Array.from({ length: PER_NODE }, (_, index) => openStream(`edge-${index}`))
  assert.throws(() => openStream('late'), /1000 open change streams/)
  // It replaces its own.
  openStream('edge-5')
  assert.deepEqual(replaced, ['edge-5'])
  void first?.return?.()
  openStream('late')
  assert.equal(streams.count, PER_NODE)
})

test('edges that share a credential learn why a stream was closed', async (t) => {
  const { server, edge } = await serveWithEdge(t, { engine: 'sqlite' })
  const notices: string[] = []
  for (let index = 0; index < PER_EDGE + 1; index++) {
    const controlPlane = createControlPlane({ url: server.url, credential: edge.token })
    const verifier = startVerifier(controlPlane, { onNotice: (line) => notices.push(line) })
    atEnd(t, () => verifier.close())
  }
  await until('an edge reports it', () => notices.some((line) => /8 streams/.test(line)))
})
