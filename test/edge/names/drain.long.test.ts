// An edge that stops moves its clients first, and other edges serve their tunnels without interruption; its
// workers are replaced in turn.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setUrl } from '../../../src/server/domain/tunnels/edges.ts'
import { addEdge, operator, serve, type TestServer } from '../../support/api/server.ts'
import type { Test } from '../../support/cleanup.ts'
import { fetchHost, openTunnel, startLocal, startTunnelEdge } from '../../support/edges/tunnels.ts'
import { freePort } from '../../support/processes/ports.ts'
import { until } from '../../support/until.ts'

async function startEdge(t: Test, server: TestServer, name: string, env = {}) {
  const { id, token } = await addEdge(server, name)
  const edge = await startTunnelEdge(t, {
    env: {
      ADIT_URL: server.url,
      ADIT_EDGE_KEY: token,
      ADIT_EDGE_HOST: '127.0.0.1',
      ADIT_EDGE_PEER_PORT: String(await freePort()),
      ...env,
    },
  })
  await setUrl(server.services, operator, id, edge.url)
  return edge
}

/** Requests to the edges, all the time. `stop` resolves with what was not served. */
function visit(edges: readonly { port: number }[], host: string) {
  const failures: string[] = []
  let served = 0
  let isOver = false
  const send = async (edge: { port: number }, method: string) => {
    const body = method === 'POST' ? Buffer.alloc(1_000) : Buffer.alloc(0)
    const { status, body: text } = await fetchHost(edge, host, { method, body })
    if (status === 200) served += 1
    else if (failures.length < 10) failures.push(`${method}: ${status} ${text}`)
  }
  const visitors = edges.flatMap((edge) =>
    ['GET', 'POST', 'POST', 'POST'].map(async (method) => {
      while (!isOver) await send(edge, method)
    }),
  )
  return {
    served: () => served,
    async stop() {
      isOver = true
      await Promise.all(visitors)
      return failures
    },
  }
}

interface Form {
  connections: number
  workers: number
  signal: 'SIGTERM' | 'SIGHUP'
}

const forms: Form[] = [
  { connections: 1, workers: 1, signal: 'SIGTERM' },
  { connections: 2, workers: 1, signal: 'SIGTERM' },
  { connections: 2, workers: 2, signal: 'SIGTERM' },
  { connections: 1, workers: 2, signal: 'SIGHUP' },
  { connections: 2, workers: 2, signal: 'SIGHUP' },
]

for (const { connections, workers, signal } of forms) {
  const client = `a client with ${connections} connections`
  test(`no request fails after ${signal}: ${client}, ${workers} workers`, async (t) => {
    const server = await serve(t, { engine: 'sqlite' })
    const draining = await startEdge(t, server, 'draining', { ADIT_EDGE_WORKERS: String(workers) })
    const others = [await startEdge(t, server, 'one'), await startEdge(t, server, 'two')]
    const { port, requests } = await startLocal(t)
    const { host } = await openTunnel(t, {
      ...{ edge: draining, key: server.key.token, port, name: 'app' },
      flags: ['--edges', String(connections)],
    })
    for (const edge of others)
      await until('it is served', async () => (await fetchHost(edge, host)).status === 200)
    const visitors = visit(signal === 'SIGTERM' ? others : [draining, ...others], host)
    const download = Promise.all(others.map((edge) => fetchHost(edge, host, { path: '/drip/300' })))
    await until(
      'the downloads have begun',
      () => requests.filter(({ url }) => url === '/drip/300').length === 2,
    )
    draining.child.kill(signal)
    if (signal === 'SIGTERM') await draining.ended
    else await draining.waitFor(/"workers restarted"/, 'stderr')
    const served = visitors.served()
    await until('requests after the end', () => visitors.served() > served + 50)
    assert.deepEqual(await visitors.stop(), [])
    for (const { body } of await download) assert.equal(body.length, 3_000_000)
  })
}
