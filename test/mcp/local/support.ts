// An agent with tools on its machine: a control plane, an edge, and a local server that echoes.
import { createServer, type IncomingMessage } from 'node:http'
import { after } from 'node:test'
import { createRuntimeFolder } from '../../inspector/support.ts'
import type { Test } from '../../support/cleanup.ts'
import { fetchHost, newKey, startPlane, startTunnelEdge } from '../../support/edges/tunnels.ts'
import { listen } from '../../support/network/listen.ts'
import { connectAgent } from '../agent.ts'

interface Received extends Pick<IncomingMessage, 'method' | 'url' | 'headers'> {
  body: string
}

/** For all tests of a file. */
export async function startShared() {
  const t = { after: after as Test['after'] }
  const plane = await startPlane(t, ['acme'])
  const edge = await startTunnelEdge(t, { plane })
  return { plane, edge, key: await newKey(plane, 'acme') }
}

type Shared = Awaited<ReturnType<typeof startShared>>

/** Responds with what it has received. */
export async function startEcho(t: Test): Promise<{ port: number; received: Received[] }> {
  const received: Received[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      const { method, url, headers } = request
      const body = String(Buffer.concat(chunks))
      received.push({ method, url, headers, body })
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ method, url, body }))
    })
  })
  return { port: await listen(t, server), received }
}

/** A user's environment in which `adit mcp` runs. */
export function createSetting(t: Test, { plane, edge, key }: Shared) {
  const env = { XDG_RUNTIME_DIR: createRuntimeFolder(t), ADIT_EDGE_URL: edge.url }
  return { env, access: (flags: string[]) => ({ url: plane.url, apiKey: key, flags, env }) }
}

/** An agent that has opened a tunnel, and a visitor of it. */
export async function openAgentTunnel(t: Test, shared: Shared, name: string, flags: string[] = []) {
  const echo = await startEcho(t)
  const setting = createSetting(t, shared)
  const access = setting.access(['--allow-port', String(echo.port), ...flags])
  const agent = await connectAgent(t, 'stdio', access)
  const opened = await agent.call('open_local_tunnel', { port: echo.port, name })
  if (opened.failed) throw new Error(opened.text)
  const host = `${name}.acme.localhost`
  const visit = (request: Parameters<typeof fetchHost>[2]) => fetchHost(shared.edge, host, request)
  return { ...setting, ...echo, agent, host, opened, visit }
}

/** The last line of a result is JSON. */
export const readResult = (text: string) => JSON.parse(text.slice(text.lastIndexOf('\n') + 1))
