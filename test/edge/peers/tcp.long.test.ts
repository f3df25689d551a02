// TCP tunnels in a cluster of real processes: the port of a name is open at every edge of its group.
import assert from 'node:assert/strict'
import { connect, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { scrape } from '../../support/api/metrics.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { createMigratedDatabase, engines } from '../../support/databases/create.ts'
import { type ClusterEdge, startClusterEdge } from '../../support/edges/cluster-edges.ts'
import { newKey, openTunnel, startPlane } from '../../support/edges/tunnels.ts'
import { listen } from '../../support/network/listen.ts'
import { freePorts, isListening } from '../../support/processes/ports.ts'
import { until } from '../../support/until.ts'
import { CONNECTIONS, TWO_WORKERS } from '../workers/edge-workers.ts'

/** No address is that of a trusted proxy, so rules see those of visitors. */
const env = { ADIT_EDGE_TRUSTED_PROXIES: '192.0.2.1' }
const BYTES = 3_000_000
const PORTS = 8

/** Sends its name, and then everything that it receives. */
async function startEcho(t: Test, name: string): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {})
    socket.write(name)
    socket.pipe(socket)
  })
  return listen(t, server)
}

/** What arrives in response; empty if the connection is closed or refused. */
async function exchange(address: string, port: number, sent = '', localAddress = '127.0.0.1') {
  const socket: Socket = connect({ host: address, port, localAddress, allowHalfOpen: true })
  let received = ''
  socket.on('error', () => {})
  socket.on('data', (chunk) => {
    received += chunk
  })
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.on('end', () => socket.end())
  socket.end(sent)
  await closed
  return received
}

const readBytes = async ({ metricsUrl }: ClusterEdge) => {
  const metrics = await scrape(metricsUrl)
  return ['in', 'out'].map((direction) => metrics.get(`adit_edge_bytes_total{direction="${direction}"}`))
}

const countLinks = async ({ metricsUrl }: ClusterEdge) =>
  (await scrape(metricsUrl)).get('adit_edge_peer_connections{direction="out"}')

for (const engine of engines)
  test(`${engine}: a TCP tunnel is open at each edge of its group, and nowhere else`, async (t) => {
    const { first, range } = await freePorts(PORTS)
    const plane = await startPlane(t, ['acme'], {
      ADIT_DATABASE_URL: await createMigratedDatabase(t, engine),
      ADIT_TCP_PORTS: range,
    })
    await plane.admin('edge-group', 'create', 'eu')
    const serving = await startClusterEdge(t, plane, 'serving', { env })
    const entry = await startClusterEdge(t, plane, 'entry', { env })
    const third = await startClusterEdge(t, plane, 'third', { env })
    const foreign = await startClusterEdge(t, plane, 'foreign', { group: 'eu', env })
    const key = await newKey(plane, 'acme')
    const open = async (edge: ClusterEdge, target: number, name: string, ...flags: string[]) => {
      const options = { edge, key, port: target, name, type: 'tcp', flags } as const
      const tunnel = await openTunnel(t, options)
      return { ...tunnel, publicPort: Number(new URL(tunnel.url).port) }
    }

    await t.test('bytes pass in both directions, and are counted at the entry only', async (t) => {
      const { publicPort, child, events } = await open(serving, await startEcho(t, 'one '), 'echo')
      await until('the entry edge listens', () => isListening(publicPort, entry.tcpHost))
      const sent = 'x'.repeat(BYTES)
      assert.equal(await exchange(entry.tcpHost, publicPort, sent), `one ${sent}`)
      // The checks whether it listens count, too: the local server sends its name.
      await until('both directions are counted', async () => {
        const [bytesIn, bytesOut = 0] = await readBytes(entry)
        return bytesIn === BYTES && bytesOut > BYTES && (bytesOut - BYTES) % 'one '.length === 0
      })
      assert.deepEqual(await readBytes(serving), [0, 0])
      await until('the client has the event', () => events().some(({ event }) => event === 'connection'))
      assert.equal(await isListening(publicPort, foreign.tcpHost), false)
      child.kill('SIGTERM')
      await until('the port is closed', async () => !(await isListening(publicPort, entry.tcpHost)))
    })

    await t.test('the entry edge decides by the address of the visitor', async (t) => {
      const target = await startEcho(t, 'allowed')
      const { publicPort } = await open(serving, target, 'allowed', '--allow-ip', '127.0.0.5')
      await until('the entry edge listens', () => isListening(publicPort, entry.tcpHost))
      assert.equal(await exchange(entry.tcpHost, publicPort, '', '127.0.0.5'), 'allowed')
      assert.equal(await exchange(entry.tcpHost, publicPort, '', '127.0.0.6'), '')
    })

    await t.test('a client of the same edge is preferred, and the other one takes over', async (t) => {
      const [one, two] = [await startEcho(t, 'one'), await startEcho(t, 'two')]
      const atServing = await open(serving, one, 'pool', '--pool')
      const atEntry = await open(entry, two, 'pool', '--pool')
      const { publicPort } = atServing
      assert.equal(atEntry.publicPort, publicPort)
      assert.equal(await exchange(serving.tcpHost, publicPort), 'one')
      assert.equal(await exchange(entry.tcpHost, publicPort), 'two')
      atEntry.child.kill('SIGKILL')
      await until('the other takes over', async () => (await exchange(entry.tcpHost, publicPort)) === 'one')
      assert.equal(await exchange(serving.tcpHost, publicPort), 'one')
    })

    await t.test('a port in use on the machine of an edge is a warning there, and tried again', async (t) => {
      const blockers = Array.from({ length: PORTS }, () => createServer((socket) => socket.destroy()))
      const isFree = async (port: number) => !(await isListening(port, entry.tcpHost))
      for (const [offset, blocker] of blockers.entries())
        if (await isFree(first + offset)) blocker.listen(first + offset, entry.tcpHost)
      atEnd(t, () => blockers.forEach((blocker) => void blocker.close()))
      const { publicPort } = await open(serving, await startEcho(t, 'here'), 'blocked')
      await entry.waitFor(new RegExp(`"port":${publicPort},.*cannot listen on the port`), 'stderr')
      assert.equal(await exchange(serving.tcpHost, publicPort), 'here')
      blockers[publicPort - first]?.close()
      await until('it listens', async () => (await exchange(entry.tcpHost, publicPort)) === 'here')
    })

    await t.test('a client whose edge stops is found at another one', async (t) => {
      const target = await startEcho(t, 'moved')
      const atServing = await open(serving, target, 'moving', '--pool')
      await open(entry, target, 'moving', '--pool')
      const { publicPort } = atServing
      await until('it listens', () => isListening(publicPort, third.tcpHost))
      await until('it knows both edges', async () => (await countLinks(third)) === 2)
      serving.child.kill('SIGKILL')
      for (let count = 0; count < 20; count++)
        assert.equal(await exchange(third.tcpHost, publicPort), 'moved')
    })
  })

test('with several workers, any of them passes connections on to any worker of another edge', async (t) => {
  const { range } = await freePorts(PORTS)
  const plane = await startPlane(t, ['acme'], { ADIT_TCP_PORTS: range })
  const start = async (name: string) => {
    const edge = await startClusterEdge(t, plane, name, { env: TWO_WORKERS })
    await edge.waitFor(/"worker listening"/, 'stderr')
    return edge
  }
  const [serving, entry] = [await start('serving'), await start('entry')]
  const key = await newKey(plane, 'acme')
  const target = await startEcho(t, 'hello ')
  const { url, child } = await openTunnel(t, { edge: serving, key, port: target, name: 'echo', type: 'tcp' })
  const port = Number(new URL(url).port)
  const replies = async ({ tcpHost }: ClusterEdge) => {
    const found = new Set<string>()
    for (let each = 0; each < CONNECTIONS; each += 1) found.add(await exchange(tcpHost, port, 'x'))
    return [...found]
  }
  const isOpenAtAll = async () => (await replies(entry)).join() === 'hello x'
  await until('all workers of the entry edge listen', isOpenAtAll)
  assert.deepEqual(await replies(serving), ['hello x'])

  for (const edge of [serving, entry]) {
    const restarted = edge.waitFor(/"workers restarted"/, 'stderr')
    edge.child.kill('SIGHUP')
    await restarted
    await until('connections are passed on by new workers', isOpenAtAll)
    assert.deepEqual(await replies(serving), ['hello x'])
  }

  child.kill('SIGTERM')
  for (const edge of [serving, entry])
    await until('the port is closed', async () => !(await isListening(port, edge.tcpHost)))
})
