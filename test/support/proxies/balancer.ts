// A load balancer with health checks and keep-alive connections to the nodes. It never retries a request, so
// every failure of a node is visible.
import http from 'node:http'
import { atEnd, type Test } from '../cleanup.ts'
import { listen } from '../network/listen.ts'

const HEALTH_CHECK_INTERVAL_MS = 150
const HEALTH_CHECK_TIMEOUT_MS = 5_000
const HOP_BY_HOP = ['connection', 'keep-alive', 'transfer-encoding']

interface Balancer {
  url: string
  /** Requests without a complete response from the node, with the error. */
  failures: string[]
  readyCount(): number
}

export async function startBalancer(t: Test, nodes: readonly string[]): Promise<Balancer> {
  const agent = new http.Agent({ keepAlive: true })
  const ready = new Set<string>()
  const failures: string[] = []
  let turn = 0

  async function checkHealth(node: string): Promise<void> {
    const isReady = await fetch(`${node}/readyz`, {
      signal: AbortSignal.timeout(HEALTH_CHECK_TIMEOUT_MS),
    }).then(
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
      if (response.headersSent) response.destroy()
      else response.writeHead(502).end()
    }
    if (!node) return fail('no node is ready')
    const { method = 'GET', headers } = request
    const forwarded = http.request(`${node}${request.url}`, { agent, method, headers }, (upstream) => {
      const endToEnd = Object.entries(upstream.headers).filter(([name]) => !HOP_BY_HOP.includes(name))
      response.writeHead(upstream.statusCode ?? 502, Object.fromEntries(endToEnd))
      upstream.on('error', (error) => fail(error.message)).pipe(response)
    })
    forwarded.on('error', (error) => fail(error.message))
    request.pipe(forwarded)
  })
  const port = await listen(t, server)
  await Promise.all(nodes.map(checkHealth))
  const healthChecks = setInterval(() => nodes.forEach(checkHealth), HEALTH_CHECK_INTERVAL_MS)
  atEnd(t, () => {
    clearInterval(healthChecks)
    agent.destroy()
  })
  return {
    url: `http://127.0.0.1:${port}`,
    failures,
    readyCount: () => ready.size,
  }
}
