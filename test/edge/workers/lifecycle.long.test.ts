// Workers of an edge that are restarted, killed and stopped, and what the control plane gets.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { addMember } from '../../support/accounts/users.ts'
import { addEdge, serve } from '../../support/api/server.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { createFolder } from '../../support/databases/create.ts'
import { openRawTunnel } from '../../support/edges/standalone-edge.ts'
import { type Edge, fetchHost, openTunnel, startLocal, startTunnelEdge } from '../../support/edges/tunnels.ts'
import { listen } from '../../support/network/listen.ts'
import { freePorts } from '../../support/processes/ports.ts'
import { startProcess } from '../../support/processes/process.ts'
import { until } from '../../support/until.ts'
import {
  CONNECTIONS,
  collectLog,
  openInEachWorker,
  startStandaloneWorkers,
  TWO_WORKERS,
  workersOfEdge,
} from './edge-workers.ts'

const NO_CONTENT = 'HTTP/1.1 204 No Content\r\n\r\n'

/** Sends requests one after the other, on connections of their own, until it is stopped. */
function startLoad(edge: Pick<Edge, 'port'>, host: string) {
  let isStopped = false
  const statuses: (number | string)[] = []
  const run = async () => {
    while (!isStopped)
      statuses.push(
        await fetchHost(edge, host).then(
          ({ status }) => status,
          (error: Error) => error.message,
        ),
      )
  }
  const running = Promise.all([run(), run(), run(), run()])
  return {
    statuses,
    async stop() {
      isStopped = true
      await running
      return statuses
    },
  }
}

async function start(t: Test, env: Record<string, string> = {}) {
  const server = await serve(t, { engine: 'sqlite' })
  const admin = await addMember(server, 'Ann', 'admin')
  const { token } = await addEdge(server, 'one')
  const edge = await startTunnelEdge(t, {
    env: { ...TWO_WORKERS, ADIT_URL: server.url, ADIT_EDGE_KEY: token, ...env },
  })
  await edge.waitFor(/"worker listening"/, 'stderr')
  const read = async <T>(path: string) => (await admin.get(`/workspaces/acme/${path}`)).json as T
  return {
    ...{ server, admin, edge },
    key: server.key.token,
    log: collectLog(edge),
    local: await startLocal(t),
    host: `app.${server.workspace.slug}.${server.config.tunnelDomain}`,
    usage: async () => {
      const { requests, peakTunnels } = await read<Record<string, number>>('usage')
      return { requests, peakTunnels }
    },
    listed: async () => (await read<{ tunnels: unknown[] }>('tunnels')).tunnels,
  }
}

test('SIGHUP replaces the workers without a failed request, and SIGTERM stops them; usage is exact', async (t) => {
  const { edge, key, local, usage } = await start(t)
  const tunnel = await openTunnel(t, { edge, key, port: local.port, name: 'app' })
  const before = workersOfEdge(edge)
  const load = startLoad(edge, tunnel.host)
  await until('requests are sent', () => load.statuses.length > 50)
  edge.child.kill('SIGHUP')
  await edge.waitFor(/"workers restarted"/, 'stderr')
  const after = workersOfEdge(edge)
  assert.deepEqual([after.length, after.filter((pid) => before.includes(pid))], [2, []])
  const count = load.statuses.length
  await until('more requests are sent', () => load.statuses.length > count + 50)
  const statuses = await load.stop()
  assert.deepEqual(new Set(statuses), new Set([200]))
  edge.child.kill('SIGTERM')
  assert.equal((await edge.ended).code, 0)
  for (const pid of after) assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
  assert.deepEqual(await usage(), { requests: statuses.length, peakTunnels: 1 })
})

test('with ADIT_EDGE_STOP_DELAY the workers serve their tunnels after SIGTERM, and a second one stops them', async (t) => {
  const { edge, key, local, listed } = await start(t, { ADIT_EDGE_STOP_DELAY: '300' })
  const { host } = await openTunnel(t, { edge, key, port: local.port, name: 'app' })
  await until('the tunnel is listed', async () => (await listed()).length === 1)
  const statuses = async (path: string) => {
    const found = new Set<number>()
    for (let each = 0; each < CONNECTIONS; each += 1)
      found.add((await fetchHost(edge, host, { path })).status)
    return [...found]
  }
  assert.deepEqual(await statuses('/.adit/ready'), [200])
  edge.child.kill('SIGTERM')
  await until('all workers drain', async () => (await statuses('/.adit/ready')).join() === '503')
  assert.deepEqual(await statuses('/'), [200])
  assert.equal((await listed()).length, 1)
  // A signal that follows at once is taken for the same.
  const isStopped = edge.ended.then(() => true)
  await until('a second signal stops the edge', () => {
    edge.child.kill('SIGTERM')
    return Promise.race([isStopped, new Promise((resolve) => setTimeout(resolve, 1_000))])
  })
  assert.deepEqual(await listed(), [])
})

test('a killed worker is started again, its clients reconnect, and it loses at most the last second', async (t) => {
  const { edge, key, log, local, usage } = await start(t)
  const tunnel = await openTunnel(t, { edge, key, port: local.port, name: 'app' })
  await until('the opening is logged', () => log.lines('tunnel opened').length === 1)
  const [{ pid } = assert.fail()] = log.lines('tunnel opened')
  const load = startLoad(edge, tunnel.host)
  await until('requests are sent', () => load.statuses.length > 200)
  const sentASecondBefore = load.statuses.length
  const from = performance.now()
  await until('a second has passed', () => performance.now() - from > 1_000)
  process.kill(pid, 'SIGKILL')
  await edge.waitFor(/"worker exited; restarting"/, 'stderr')
  await until('its client is back', () => log.lines('tunnel opened').length === 2)
  await until('two workers run', () => workersOfEdge(edge).length === 2)
  const sent = (await load.stop()).length
  edge.child.kill('SIGTERM')
  await edge.ended
  const { requests = 0, peakTunnels } = await usage()
  assert.ok(requests >= sentASecondBefore, `${requests} of ${sentASecondBefore} requests`)
  // A request that found the client gone counts, too.
  assert.ok(requests <= sent, `${requests} requests were counted, and ${sent} sent`)
  assert.equal(peakTunnels, 1)
})

test('clients at both workers: the tunnel counts once, and a revoked key closes it at both', async (t) => {
  const { admin, edge, key, log, host, listed, usage, server } = await start(t)
  const session = 's'.repeat(32)
  const tunnels: Awaited<ReturnType<typeof openRawTunnel>>[] = []
  await openInEachWorker(edge, log, host, async () => {
    const tunnel = await openRawTunnel(edge, key, { name: 'app', session })
    tunnel.respond(NO_CONTENT)
    tunnels.push(tunnel)
  })
  assert.equal((await fetchHost(edge, host)).status, 204)
  await until('all connections are reported', async () => (await listed()).length > 0)
  assert.equal((await listed()).length, 1)
  const closed = Promise.all(
    tunnels.map(
      ({ events }) => new Promise((resolve) => events.once('close', resolve).on('error', () => {})),
    ),
  )
  assert.equal((await admin.remove(`/workspaces/acme/keys/${server.key.id}`)).status, 200)
  await closed
  await until('the tunnel is not listed', async () => (await listed()).length === 0)
  edge.child.kill('SIGTERM')
  await edge.ended
  assert.deepEqual(await usage(), { requests: 1, peakTunnels: 1 })
})

/** Long enough for both workers to be replaced if they do not wait for connections. */
const HELD_MS = 4_000

test('the port of a TCP tunnel, and its connections, stay open while its worker is replaced', async (t) => {
  const { range } = await freePorts(4)
  const { edge, key } = await startStandaloneWorkers(t, { ADIT_EDGE_TCP_PORTS: range })
  const echo = createServer((socket) => socket.on('error', () => {}).pipe(socket))
  const port = await listen(t, echo)
  const client = startProcess(
    t,
    ['tunnel', 'tcp', `127.0.0.1:${port}`, '--name', 'echo', '--edge', edge.url, '--json'],
    { ADIT_API_KEY: key },
  )
  const [opened] = await client.waitFor(/^\{"event":"open".*\}$/m)
  const publicPort = Number(new URL((JSON.parse(opened) as { url: string }).url).port)
  const replies: string[] = []
  let isStopped = false
  const load = (async () => {
    while (!isStopped) replies.push(await exchange(t, publicPort))
  })()
  await until('connections are open', () => replies.length > 20)
  const held = connect({ port: publicPort, host: '127.0.0.1' })
  atEnd(t, () => held.destroy())
  await once(held, 'connect')
  edge.child.kill('SIGHUP')
  await sleep(HELD_MS)
  held.write('held')
  assert.equal(String((await once(held, 'data'))[0]), 'held')
  held.destroy()
  await edge.waitFor(/"workers restarted"/, 'stderr')
  const count = replies.length
  await until('more connections are open', () => replies.length > count + 20)
  isStopped = true
  await load
  assert.deepEqual(new Set(replies), new Set(['hello']))
})

async function exchange(t: Test, port: number): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1' })
  atEnd(t, () => socket.destroy())
  try {
    await once(socket, 'connect')
    socket.write('hello')
    const [data] = await Promise.race([once(socket, 'data'), once(socket, 'close').then(() => ['closed'])])
    return String(data)
  } catch (error) {
    return (error as Error).message
  } finally {
    socket.destroy()
  }
}

test('SIGHUP while an edge starts restarts its workers afterwards', async (t) => {
  const starting = Promise.withResolvers<Socket>()
  let connections = 0
  const controlPlane = createServer((socket) => {
    connections += 1
    if (connections === 1) starting.resolve(socket)
    else socket.destroy()
  })
  const edge = startProcess(t, ['edge'], {
    ...TWO_WORKERS,
    ADIT_URL: `http://127.0.0.1:${await listen(t, controlPlane)}`,
    ADIT_EDGE_KEY: 'adit_edge_none',
    ADIT_EDGE_FOLDER: createFolder(t),
    ADIT_EDGE_PORT: '0',
  })
  const socket = await starting.promise
  edge.child.kill('SIGHUP')
  socket.destroy()
  await edge.waitFor(/"workers restarted"/, 'stderr')
})
