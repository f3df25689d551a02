// The port of a TCP tunnel belongs to one name of one workspace, whatever others open and whatever restarts.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { openRawTunnel, startStandaloneEdge } from '../../support/edges/standalone-edge.ts'
import {
  type Edge,
  fetchHost,
  newKey,
  openTunnel,
  startPlane,
  startTunnelEdge,
} from '../../support/edges/tunnels.ts'
import { freePorts, isListening } from '../../support/processes/ports.ts'
import { startProcess } from '../../support/processes/process.ts'
import { until } from '../../support/until.ts'

const parsePort = ({ url }: { url: string }) => Number(new URL(url).port)

/** Opens a TCP tunnel. Returns its port. */
async function open(t: Test, edge: Edge, key: string, name: string, pool = false) {
  const tunnel = await openRawTunnel(edge, key, { type: 'tcp', name, pool })
  atEnd(t, tunnel.close)
  return { port: parsePort(tunnel), close: tunnel.close }
}

const isTaken = (error: Error) => error.message.includes('is in use at another edge')

/** Waits until no other edge has the name, opens a tunnel and closes it. Returns its port. */
async function use(t: Test, edge: Edge, key: string, name: string, host = '127.0.0.1'): Promise<number> {
  let port = 0
  await until('no other edge has the name', async () => {
    const tunnel = await open(t, edge, key, name).catch((error) => {
      if (!isTaken(error)) throw error
    })
    port = tunnel?.port ?? 0
    tunnel?.close()
    return tunnel
  })
  await until('the port is closed', async () => !(await isListening(port, host)))
  return port
}

async function startPlaneWithPorts(t: Test, count: number, settings = {}) {
  const { range } = await freePorts(count)
  const plane = await startPlane(t, ['acme', 'beta'], { ADIT_TCP_PORTS: range, ...settings })
  const [acme, beta] = [await newKey(plane, 'acme'), await newKey(plane, 'beta')]
  return { plane, acme, beta }
}

test('no other workspace gets the port of a name, at any edge, also after restarts of edges and nodes', async (t) => {
  const { plane, acme, beta } = await startPlaneWithPorts(t, 3)
  const [edge, other] = [
    await startTunnelEdge(t, { plane }),
    await startTunnelEdge(t, { plane, env: { ADIT_EDGE_TCP_HOST: '127.0.0.2' } }),
  ]
  const port = await use(t, edge, acme, 'db')
  assert.equal(await use(t, other, acme, 'db', '127.0.0.2'), port)
  edge.child.kill('SIGKILL')
  await edge.ended
  const restarted = await edge.restart()
  plane.child.kill('SIGKILL')
  await plane.ended
  await plane.restart()
  const ports = new Set<number>()
  const rejections: string[] = []
  for (const name of ['a', 'b', 'c'])
    for (const [at, host] of [
      [restarted, '127.0.0.1'],
      [other, '127.0.0.2'],
    ] as const)
      await use(t, at, beta, name, host).then(
        (got) => ports.add(got),
        (error: Error) => rejections.push(error.message),
      )
  assert.equal(ports.size, 2, 'all other ports were assigned')
  assert.ok(!ports.has(port))
  assert.equal(rejections.length, 2)
  for (const message of rejections) assert.match(message, /ports for TCP tunnels are assigned/)
  assert.equal(await use(t, restarted, acme, 'db'), port)
})

test('a workspace at its limit gets no further port, and a message with the names that have one', async (t) => {
  const { plane, acme, beta } = await startPlaneWithPorts(t, 3, {
    ADIT_TCP_PORTS_PER_WORKSPACE: '2',
  })
  const edge = await startTunnelEdge(t, { plane, env: { ADIT_EDGE_TCP_PORTS: '1-2' } })
  await edge.waitFor(/ADIT_EDGE_TCP_PORTS ignored: the control plane assigns ports/, 'stderr')
  for (const name of ['one', 'two']) await use(t, edge, acme, name)
  await assert.rejects(
    use(t, edge, acme, 'three'),
    /has ports for 2 TCP tunnels, which is the limit\. Open one of these names again: one, two\..*7 days/,
  )
  await use(t, edge, beta, 'db')
})

test('a tunnel waits while all ports are assigned, until the operator releases one that is not in use', async (t) => {
  const { plane, acme, beta } = await startPlaneWithPorts(t, 1)
  const edge = await startTunnelEdge(t, { plane })
  const { port, close } = await open(t, edge, acme, 'db')
  const args = ['tunnel', 'tcp', '9', '--name', 'cache', '--edge', edge.url]
  const waiting = startProcess(t, args, { ADIT_API_KEY: beta })
  await waiting.waitFor(/ports for TCP tunnels are assigned/, 'stderr')
  const release = () => plane.admin('port', 'release', String(port))
  await assert.rejects(release(), /Port \d+ is in use by an open tunnel, "db" of the workspace "acme"/)
  close()
  await until('the control plane knows that it is closed', () => release().then(Boolean, () => false))
  await waiting.waitFor(new RegExp(`^tcp://cache\\.beta\\.localhost:${port}$`, 'm'))
  assert.match(await plane.admin('port', 'list'), new RegExp(`^${port} +beta +cache +open`, 'm'))
})

test('a tunnel whose port another program uses is rejected, and gets the same port later', async (t) => {
  const { plane, acme } = await startPlaneWithPorts(t, 2)
  const edge = await startTunnelEdge(t, { plane })
  const port = await use(t, edge, acme, 'db')
  const program = createServer().listen(port, '127.0.0.1')
  await once(program, 'listening')
  atEnd(t, () => void program.close())
  await assert.rejects(
    open(t, edge, acme, 'db'),
    new RegExp(`cannot listen on port ${port}, which belongs to this name: .*EADDRINUSE.*stop the program`),
  )
  await edge.waitFor(/cannot listen on the port of a TCP tunnel/, 'stderr')
  program.close()
  assert.equal((await open(t, edge, acme, 'db')).port, port)
})

test('without a control plane, an edge keeps the ports of names after kill -9', async (t) => {
  const { edge, keys } = await startStandaloneEdge(t, ['acme', 'beta'], {
    ADIT_EDGE_TCP_PORTS: (await freePorts(2)).range,
    ADIT_TCP_PORTS_PER_WORKSPACE: '1',
  })
  const [acme = '', beta = ''] = keys
  const { port } = await open(t, edge, acme, 'db')
  edge.child.kill('SIGKILL')
  await edge.ended
  const restarted = await edge.restart()
  const other = await use(t, restarted, beta, 'a')
  assert.notEqual(other, port)
  await assert.rejects(use(t, restarted, beta, 'b'), /ports for 1 TCP tunnels, which is the limit.*: a\./)
  assert.equal(await use(t, restarted, acme, 'db'), port)
})

test('while the control plane is down, a tunnel reopens with the same port', async (t) => {
  const { plane, acme } = await startPlaneWithPorts(t, 3)
  const edge = await startTunnelEdge(t, { plane })
  const { port, close } = await open(t, edge, acme, 'db')
  plane.child.kill('SIGKILL')
  await plane.ended
  close()
  await until('the port is closed', async () => !(await isListening(port)))
  const reopened = await open(t, edge, acme, 'db')
  assert.equal(reopened.port, port)
  await plane.restart()
  const listed = () => plane.admin('port', 'list')
  await until('the tunnel is listed as open', async () => /db +open/.test(await listed()))
  assert.match(await listed(), new RegExp(`^${port} +acme +db +open`, 'm'))
})

test('an edge that is stopping frees its ports while it completes requests', async (t) => {
  const { edge, keys, local } = await startStandaloneEdge(t, ['acme'], {
    ADIT_EDGE_TCP_PORTS: (await freePorts(2)).range,
  })
  const [key = ''] = keys
  const { host } = await openTunnel(t, { edge, key, port: local.port, name: 'site' })
  const { port } = await open(t, edge, key, 'db')
  let isComplete = false
  const response = fetchHost(edge, host, { path: '/drip/200' }).finally(() => {
    isComplete = true
  })
  await until('the request is in progress', () => local.requests.length === 1)
  edge.child.kill('SIGTERM')
  await until('the port is closed', async () => !(await isListening(port)))
  assert.equal(isComplete, false)
  assert.equal((await response).status, 200)
})
