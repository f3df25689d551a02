// A workspace that reaches its quota, at a real edge: what visitors and tunnel clients get.
import assert from 'node:assert/strict'
import { type EventEmitter, once } from 'node:events'
import { connect, createServer } from 'node:net'
import { after, test } from 'node:test'
import {
  fetchHost,
  newKey,
  openSocket,
  openTunnel,
  startLocal,
  startPlane,
  startTunnel,
  startTunnelEdge,
} from '../../support/edges/tunnels.ts'
import { listen } from '../../support/network/listen.ts'
import { freePorts } from '../../support/processes/ports.ts'
import { startProcess } from '../../support/processes/process.ts'
import { until } from '../../support/until.ts'

const REACTION_MS = 10_000
const { first: port } = await freePorts(1)
const plane = await startPlane({ after }, ['acme', 'other'], { ADIT_TCP_PORTS: String(port) })
const edge = await startTunnelEdge({ after }, { plane })

/** Unlike `once`, resolves also if there is an error first. */
const closing = (emitter: EventEmitter) => new Promise((resolve) => emitter.once('close', resolve))

test('a workspace at its quota has no traffic and no new tunnels until the quota is raised', async (t) => {
  const key = await newKey(plane, 'acme')
  const local = await startLocal(t)
  const tunnel = await openTunnel(t, { edge, key, port: local.port, name: 'site' })
  const other = await openTunnel(t, {
    edge,
    key: await newKey(plane, 'other'),
    port: local.port,
    name: 'site',
  })
  const echo = createServer((socket) => socket.on('error', () => {}).pipe(socket))
  const echoPort = await listen(t, echo)
  const tcp = startProcess(
    t,
    ['tunnel', 'tcp', `127.0.0.1:${echoPort}`, '--name', 'tcp', '--edge', edge.url],
    { ADIT_API_KEY: key },
  )
  await tcp.waitFor(/^tcp:/m)
  const dial = () => connect(port, '127.0.0.1').on('error', () => {})

  assert.equal((await fetchHost(edge, tunnel.host)).status, 200)
  const socket = await openSocket(edge, tunnel.host)
  socket.on('error', () => {})
  const closed = closing(socket)
  const connection = dial()
  connection.write('hello')
  await once(connection, 'data')
  const ended = closing(connection)
  await plane.admin('workspace', 'quota', 'acme', '--requests', '4')
  assert.equal((await fetchHost(edge, tunnel.host)).status, 200, 'the fourth request')

  let response = await fetchHost(edge, tunnel.host)
  await until(
    'the edge rejects requests',
    async () => {
      response = await fetchHost(edge, tunnel.host)
      return response.status === 429
    },
    REACTION_MS,
  )
  assert.match(response.body.toString(), /It renews on \d{4}-\d\d-01 at 00:00 UTC\./)
  assert.ok(Number(response.headers['retry-after']) > 0)
  const page = await fetchHost(edge, tunnel.host, { headers: { accept: 'text/html' } })
  assert.equal(page.status, 429)
  assert.match(page.body.toString(), /<h1>This site has used up its traffic for this month<\/h1>/)
  await assert.rejects(openSocket(edge, tunnel.host), /429/)
  await closed
  await ended
  await tcp.waitFor(
    /^! The workspace "acme" has used up its quota for this month\. .* is rejected\.$/m,
    'stderr',
  )
  await tunnel.waitFor(/"event":"notice","message":"The workspace \\"acme\\" has used up its quota/)
  const rejected = dial()
  await closing(rejected)
  assert.equal(rejected.bytesRead, 0)
  const second = startTunnel(t, { edge, key, port: local.port, name: 'second' })
  await second.waitFor(/used up its quota for this month/, 'stderr')
  assert.equal((await fetchHost(edge, other.host)).status, 200, 'another workspace')

  await plane.admin('workspace', 'quota', 'acme', '--requests', '1M')
  await until(
    'the edge accepts requests again',
    async () => (await fetchHost(edge, tunnel.host)).status === 200,
    REACTION_MS,
  )
  await tunnel.waitFor(/"event":"notice","message":"The quota of the workspace was raised or renewed/)
  await tcp.waitFor(
    /^! The quota of the workspace was raised or renewed: traffic is accepted again\.$/m,
    'stderr',
  )
  const again = dial()
  again.write('hello')
  await once(again, 'data')
  again.destroy()
})
