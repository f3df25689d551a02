// A load balancer with health checks and keep-alive connections to the nodes. It never retries a request, so
// every failure of a node is visible.
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { atEnd, type Test } from '../cleanup.ts'

const HEALTH_CHECK_INTERVAL_MS = 150
/** Hop-by-hop headers. */
const HOP_BY_HOP = ['connection', 'keep-alive', 'transfer-encoding']

interface Balancer {
  url: string
  /** Requests without a response from the node, with the error. */
  failures: string[]
  /** How many nodes are ready. */
  ready(): number
}

export async function startBalancer(t: Test, nodes: readonly string[]): Promise<Balancer> {
  const agent = new http.Agent({ keepAlive: true })
  const ready = new Set<string>()
  const failures: string[] = []
  let turn = 0

  async function checkHealth(node: string): Promise<void> {
    const isReady = await fetch(`${node}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    )
    if (isReady) ready.add(node)
    else ready.delete(node)
  }

  const server = http.createServer((request, response) => {
    const choice = [...ready]
    const node = choice[turn++ % choice.length]
    const fail = (reason: string) => {
      failures.push(`${request.method} ${request.url} to ${node}: ${reason}`)
      response.writeHead(502).end()
    }
    if (!node) return fail('no node is ready')
    const { method = 'GET', headers } = request
    const forwarded = http.request(`${node}${request.url}`, { agent, method, headers }, (upstream) => {
      const kept = Object.entries(upstream.headers).filter(([name]) => !HOP_BY_HOP.includes(name))
      response.writeHead(upstream.statusCode ?? 502, Object.fromEntries(kept))
      upstream.pipe(response)
    })
    forwarded.on('error', (error) => fail(error.message))
    request.pipe(forwarded)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  await Promise.all(nodes.map(checkHealth))
  const healthChecks = setInterval(() => nodes.forEach(checkHealth), HEALTH_CHECK_INTERVAL_MS)
  atEnd(t, () => {
    clearInterval(healthChecks)
    server.close()
    server.closeAllConnections()
    agent.destroy()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    failures,
    ready: () => ready.size,
  }
}
