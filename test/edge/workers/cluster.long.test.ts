// Two edges with two workers each: whichever worker a visitor reaches, and whichever has the client.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import {
  type Edge,
  fetchHost,
  newKey,
  openSocket,
  openTunnel,
  startLocal,
  startPlane,
  startTunnelEdge,
} from '../../support/edges/tunnels.ts'
import { freePort } from '../../support/processes/ports.ts'
import { until } from '../../support/until.ts'
import { CONNECTIONS, collectLog, TWO_WORKERS, workersOfEdge } from './edge-workers.ts'

test('a request at one edge reaches the client at the other one, through any two workers', async (t) => {
  const plane = await startPlane(t, ['acme'])
  const start = async () => {
    const env = { ...TWO_WORKERS, ADIT_EDGE_PEER_PORT: String(await freePort()) }
    const edge = await startTunnelEdge(t, { plane, env })
    await edge.waitFor(/"worker listening"/, 'stderr')
    return edge
  }
  const [serving, entry] = [await start(), await start()]
  const local = await startLocal(t)
  const key = await newKey(plane, 'acme')
  const log = collectLog(serving)
  const tunnel = await openTunnel(t, { edge: serving, key, port: local.port, name: 'app' })
  const statuses = async (edge: Edge) => {
    const found = new Set<number>()
    for (let each = 0; each < CONNECTIONS; each += 1) found.add((await fetchHost(edge, tunnel.host)).status)
    return [...found]
  }
  await until('requests are forwarded', async () => (await statuses(entry)).join() === '200')
  assert.deepEqual(await statuses(serving), [200])
  for (let each = 0; each < CONNECTIONS; each += 1) {
    const { body } = await fetchHost(entry, tunnel.host, { method: 'POST', body: Buffer.alloc(200_000) })
    assert.equal(JSON.parse(String(body)).received, 200_000)
    const socket = await openSocket(entry, tunnel.host)
    const reply = once(socket, 'message')
    socket.send('hello')
    assert.equal(String((await reply)[0]), 'hello')
    socket.terminate()
  }

  // The client reconnects, perhaps to the other worker.
  const [opened] = log.lines('tunnel opened')
  process.kill(opened?.pid ?? assert.fail(), 'SIGKILL')
  await until('the client is back', () => log.lines('tunnel opened').length === 2)
  await until('requests are forwarded again', async () => (await statuses(entry)).join() === '200')
  await until('two workers run', () => workersOfEdge(serving).length === 2)

  serving.child.kill('SIGHUP')
  await serving.waitFor(/"workers restarted"/, 'stderr')
  await until('requests are forwarded to new workers', async () => (await statuses(entry)).join() === '200')

  tunnel.child.kill()
  await until('the tunnel is closed', async () => (await statuses(entry)).join() === '404')
})
