// HAProxy and nginx in front of three edges, with the configurations from the documentation.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { WebSocket } from 'ws'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { type ClusterEdge, startClusterEdge } from '../../support/edges/cluster-edges.ts'
import { openRawTunnel } from '../../support/edges/standalone-edge.ts'
import { fetchHost, newKey, openTunnel, startLocal, startPlane } from '../../support/edges/tunnels.ts'
import { freePort } from '../../support/processes/ports.ts'
import { root } from '../../support/processes/process.ts'
import { haproxy, startHaproxy } from '../../support/proxies/haproxy.ts'
import { nginx, startNginx } from '../../support/proxies/nginx.ts'
import { until } from '../../support/until.ts'

/** A loopback address that neither the proxy nor an edge uses; Linux has all of them. */
const CLIENT = process.platform === 'linux' ? '127.0.0.5' : '127.0.0.1'
const NAMES = ['edge-1', 'edge-2', 'edge-3'] as const
/** Seconds: longer than a balancer needs to notice. */
const STOP_DELAY = '4'
const resolveNames = { NODE_OPTIONS: `--import=${join(root, 'test/support/network/loopback-dns.js')}` }

const addresses = (edges: readonly ClusterEdge[]) =>
  Object.fromEntries(edges.map(({ port }, index) => [`10.0.0.1${index + 1}:8081`, `127.0.0.1:${port}`]))

/** Without TLS. Responses name the edge that has sent them. */
const balancers = {
  nginx: {
    isInstalled: nginx !== undefined,
    checksReadiness: false,
    start: (t: Test, port: number, edges: readonly ClusterEdge[]) =>
      startNginx(t, port, 'docs/edges/balancer/nginx.conf', {
        'listen 443 ssl;': `listen 127.0.0.1:${port} default_server;`,
        'ssl_certificate     /etc/ssl/tunnels.example.com.pem;': '',
        'ssl_certificate_key /etc/ssl/tunnels.example.com.key;': '',
        'proxy_pass http://$edge;': 'proxy_pass http://$edge; add_header X-Edge $upstream_addr always;',
        ...addresses(edges),
      }),
  },
  HAProxy: {
    isInstalled: haproxy !== undefined,
    checksReadiness: true,
    start: (t: Test, port: number, edges: readonly ClusterEdge[]) =>
      startHaproxy(t, port, 'docs/edges/balancer/haproxy.cfg', {
        'bind :443 ssl crt /etc/ssl/tunnels/ alpn http/1.1': `bind 127.0.0.1:${port}`,
        'default_backend edges':
          'http-response set-header X-Edge %si:%sp\n  http-response set-header X-Backend %b\n' +
          '  default_backend edges',
        ...addresses(edges),
      }),
  },
}

for (const [name, { isInstalled, checksReadiness, start }] of Object.entries(balancers))
  suite(`three edges behind ${name}`, { skip: !isInstalled && `${name} is not installed here` }, () => {
    test(`${name}: requests arrive at any edge, and none fails while edges are stopped in turn`, async (t) => {
      const port = await freePort()
      const plane = await startPlane(t, ['acme'])
      const edges: ClusterEdge[] = []
      for (const each of NAMES)
        edges.push(
          await startClusterEdge(t, plane, each, {
            url: `http://${each}.example.com:${port}`,
            env: { ADIT_EDGE_STOP_DELAY: STOP_DELAY },
          }),
        )
      await start(t, port, edges)
      const balancer = { port, url: `http://127.0.0.1:${port}` }
      const local = await startLocal(t)
      const key = await newKey(plane, 'acme')
      await until('an edge is ready', async () => (await fetchHost(balancer, 'x', READY)).status === 200)
      const tunnel = await openTunnel(t, {
        ...{ edge: balancer, key, port: local.port, name: 'app', env: resolveNames },
      })
      /** The edge that has sent the response. */
      const get = async () => {
        const { status, headers } = await fetchHost(balancer, tunnel.host)
        return { status, edge: edges.find((each) => headers['x-edge'] === `127.0.0.1:${each.port}`)?.name }
      }
      const untilServedBy = (what: string, expected: readonly string[]) =>
        until(what, async () => {
          const responses = await Promise.all(Array.from({ length: 12 }, get))
          const seen = [...new Set(responses.map(({ edge }) => edge))].sort()
          return responses.every(({ status }) => status === 200) && seen.join() === expected.join()
        })
      await untilServedBy('all edges serve the tunnel', NAMES)

      await t.test('the local server sees the address of the visitor', async () => {
        const forged = { 'x-forwarded-for': '203.0.113.1' }
        for (let count = 0; count < NAMES.length; count++) {
          const socket = new WebSocket(`ws://127.0.0.1:${port}/`, {
            headers: { host: tunnel.host, ...forged },
            localAddress: CLIENT,
          })
          const upgraded = once(local.server, 'upgrade')
          await once(socket, 'open')
          const [{ headers }] = await upgraded
          assert.equal(headers['x-forwarded-for'], `${CLIENT}, 127.0.0.1`)
          for (const size of [1, 100_000]) {
            socket.send(Buffer.alloc(size, 'w'))
            const [back] = await once(socket, 'message')
            assert.ok(back.equals(Buffer.alloc(size, 'w')))
          }
          socket.close()
          await once(socket, 'close')
        }
      })

      await t.test('edges that are stopped in turn lose no request', async () => {
        // A connection that is reset while an edge closes its listener: nginx sends only GETs again.
        const methods = ['GET', 'GET', 'GET', ...(checksReadiness ? ['POST'] : [])]
        const load = startLoad(balancer, tunnel.host, methods)
        // Without checks, an edge that was just started would get requests too early.
        const stopped = checksReadiness ? edges : edges.slice(1)
        for (const [index, edge] of [...stopped].entries()) {
          edge.child.kill('SIGTERM')
          assert.equal((await edge.ended).code, 0)
          if (!checksReadiness) continue
          edges[index] = { ...edge, ...(await edge.restart()) }
          await untilServedBy(`${edge.name} is back`, NAMES)
        }
        const { requests, failures } = await load.stop()
        assert.deepEqual(failures, [])
        assert.ok(requests > 100, String(requests))
      })

      if (!checksReadiness) return
      await t.test('an edge that is cut off gets no requests until it is back', async () => {
        const [cutOff, ...others] = edges as [ClusterEdge, ...ClusterEdge[]]
        cutOff.relay.cut()
        await untilServedBy(
          'the others serve the tunnel',
          others.map((edge) => edge.name),
        )
        assert.equal((await fetchHost(cutOff, 'x', READY)).status, 503)
        cutOff.relay.mend()
        await untilServedBy('it is back', NAMES)
      })
    })
  })

const READY = { path: '/.adit/ready' }

/** Nearly as many as an edge with so few descriptors accepts, which is 344. */
const CROWDED = { descriptors: 600, connections: 312 }

/** Keeps connections of visitors to an edge open: the edge closes some before it has read their requests. */
function startCrowd(t: Test, { port }: ClusterEdge, host: string) {
  const sockets = new Set<Socket>()
  const open = () => {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
    socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
    sockets.add(socket)
  }
  const fill = () => {
    while (sockets.size < CROWDED.connections) open()
  }
  fill()
  const timer = setInterval(fill, 50)
  const stop = () => {
    clearInterval(timer)
    for (const socket of sockets) socket.destroy()
  }
  atEnd(t, stop)
  return stop
}

const noHaproxy = haproxy === undefined && 'HAProxy is not installed here'

test('HAProxy: if all edges are overloaded, they get requests nevertheless', {
  skip: noHaproxy,
}, async (t) => {
  const port = await freePort()
  const plane = await startPlane(t, ['acme'])
  const key = await newKey(plane, 'acme')
  const edges: ClusterEdge[] = []
  for (const name of NAMES)
    edges.push(await startClusterEdge(t, plane, name, { descriptors: CROWDED.descriptors }))
  await balancers.HAProxy.start(t, port, edges)
  const balancer = { port, url: `http://127.0.0.1:${port}` }
  await until('an edge is ready', async () => (await fetchHost(balancer, 'x', READY)).status === 200)
  const local = await startLocal(t)
  const tunnel = await openTunnel(t, { edge: balancer, key, port: local.port, name: 'app' })
  const get = async () => {
    const response = await fetchHost(balancer, tunnel.host).catch(() => undefined)
    return `${response?.status} from ${response?.headers['x-backend']}`
  }
  await until('the tunnel is served', async () => (await get()) === '200 from edges')
  const crowds: (() => void)[] = []
  for (const edge of edges) {
    // It never responds.
    const silent = await openRawTunnel(edge, key, { name: `silent-${edge.name}` })
    atEnd(t, () => silent.close())
    crowds.push(startCrowd(t, edge, silent.host))
  }
  await until('the tunnel is served by overloaded edges', async () => (await get()) === '200 from any-edge')
  for (const stop of crowds) stop()
  await until('edges are ready', async () => (await get()) === '200 from edges')
})

/** A request after the other for each of the methods. */
function startLoad(balancer: { port: number }, host: string, methods: readonly string[]) {
  const failures: string[] = []
  let requests = 0
  let isStopped = false
  const worker = async (method: string) => {
    while (!isStopped) {
      const body = method === 'POST' ? Buffer.alloc(10_000) : Buffer.alloc(0)
      const result = await fetchHost(balancer, host, { method, body }).then(
        ({ status, headers, body }) =>
          status === 200 ? undefined : `${status} ${headers['x-edge']} ${body}`,
        (error: Error) => error.message,
      )
      requests += 1
      if (result !== undefined) failures.push(`${method}: ${result}`)
    }
  }
  const workers = methods.map(worker)
  return {
    async stop() {
      isStopped = true
      await Promise.all(workers)
      return { requests, failures }
    },
  }
}
