// Tunnels in processes: control plane, edges and tunnel clients, with a local server and requests through the
// edge.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, request as send } from 'node:http'
import { join } from 'node:path'
import { WebSocket, WebSocketServer } from 'ws'
import type { Test } from '../cleanup.ts'
import { createFolder, createMigratedDatabase } from '../databases/create.ts'
import { collectText } from '../network/collect.ts'
import { listen } from '../network/listen.ts'
import { freePort } from '../processes/ports.ts'
import { type RunningProcess, run, startProcess, startServing } from '../processes/process.ts'

export interface Plane extends RunningProcess {
  url: string
  env: Record<string, string>
  /** Runs `adit admin` and returns its output. */
  admin(...args: string[]): Promise<string>
  restart(): Promise<Plane>
}

/** A control plane with a workspace for each slug. */
export async function startPlane(
  t: Test,
  slugs: readonly string[] = [],
  settings: Record<string, string> = {},
): Promise<Plane> {
  const env = {
    ADIT_DATABASE_URL: await createMigratedDatabase(t, 'sqlite'),
    ADIT_PORT: String(await freePort()),
    ADIT_LOG_LEVEL: 'warn',
    ...settings,
  }
  async function admin(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await run(t, ['admin', ...args], env)
    if (code !== 0) throw new Error(stderr)
    return stdout.trim()
  }
  const start = async (): Promise<Plane> => ({
    ...(await startServing(t, env)),
    env,
    admin,
    restart: start,
  })
  const plane = await start()
  for (const slug of slugs) await admin('workspace', 'create', slug, '--provisioned')
  return plane
}

export const newKey = (plane: Plane, slug: string) => plane.admin('key', 'create', '--workspace', slug)

export interface Edge extends RunningProcess {
  url: string
  port: number
  /** Folder of its spool, or of its ports. */
  folder: string
  restart(): Promise<Edge>
}

interface TunnelEdgeOptions {
  plane?: Plane
  args?: string[]
  env?: Record<string, string>
  /** The limit of open files; undefined for the one of this process. */
  descriptors?: number | undefined
}

/** An edge of a control plane, or with other arguments and settings. */
export async function startTunnelEdge(
  t: Test,
  { plane, args = [], env = {}, descriptors }: TunnelEdgeOptions,
): Promise<Edge> {
  const folder = join(createFolder(t), 'edge')
  const access = plane && {
    ADIT_URL: plane.url,
    ADIT_EDGE_KEY: await plane.admin('edge', 'create', `edge-${await freePort()}`),
  }
  const settings = { ...access, ADIT_EDGE_FOLDER: folder, ADIT_EDGE_PORT: String(await freePort()), ...env }
  const start = async (): Promise<Edge> => {
    const running = startProcess(t, ['edge', ...args, '--json'], settings, '', undefined, descriptors)
    const [line] = await running.waitFor(/^\{.*\}$/m)
    const { url } = JSON.parse(line) as { url: string }
    return { ...running, url, port: Number(new URL(url).port), folder, restart: start }
  }
  return start()
}

interface TunnelEvent {
  event: 'open' | 'request' | 'connection' | 'lost'
  url?: string
  host?: string
  method?: string
  path?: string
  status?: number
}

export interface OpenTunnel extends RunningProcess {
  url: string
  host: string
  events(): TunnelEvent[]
}

/** `adit tunnel`, once it is open. */
export async function openTunnel(t: Test, options: TunnelOptions): Promise<OpenTunnel> {
  const running = startTunnel(t, options)
  await running.waitFor(/"event":"open"/)
  const { url = '', host = '' } = running.events()[0] as TunnelEvent
  return { ...running, url, host }
}

interface TunnelOptions {
  edge: Pick<Edge, 'url'>
  key: string
  port: number
  name?: string
  type?: 'http' | 'tcp'
  flags?: string[]
  env?: Record<string, string>
}

export function startTunnel(t: Test, options: TunnelOptions) {
  const { edge, key, port, name, type = 'http', flags = [], env = {} } = options
  const named = name ? ['--name', name] : []
  const args = [
    'tunnel',
    ...(type === 'tcp' ? [type] : []),
    String(port),
    ...named,
    ...flags,
    '--edge',
    edge.url,
    '--json',
  ]
  const running = startProcess(t, args, { ADIT_API_KEY: key, ...env })
  const output = collectText(running.child.stdout)
  const events = () => (output().match(/^\{.*\}$/gm) ?? []).map((line) => JSON.parse(line) as TunnelEvent)
  return { ...running, events }
}

/** A local server: describes its request, sends bodies of any size, and echoes WebSocket messages. */
export async function startLocal(
  t: Test,
): Promise<{ server: Server; port: number; requests: IncomingMessage[] }> {
  const requests: IncomingMessage[] = []
  const server = createServer((request, response) => {
    requests.push(request)
    // Responds without reading the body.
    if (request.url === '/early') return void response.end('no')
    const [, kind, size] = /^\/(bytes|drip)\/(\d+)$/.exec(request.url ?? '') ?? []
    let received = 0
    request.on('data', (chunk) => {
      received += chunk.length
    })
    request.on('end', () => {
      if (kind === 'bytes') response.end(Buffer.alloc(Number(size), 'x'))
      else if (kind === 'drip') drip(response, Number(size))
      else response.end(JSON.stringify({ received, headers: request.headers, url: request.url }))
    })
  })
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket) => {
    socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
    socket.on('error', () => socket.terminate())
  })
  return { server, port: await listen(t, server, 0, 'localhost'), requests }
}

const CHUNK = Buffer.alloc(10_000, 'd')

/** Sends the given number of chunks, one every 10 ms. */
function drip(response: NodeJS.WritableStream & { destroyed?: boolean }, chunks: number): void {
  let left = chunks
  const timer = setInterval(() => {
    if (response.destroyed || left <= 0) {
      clearInterval(timer)
      response.end()
    } else {
      left -= 1
      response.write(CHUNK)
    }
  }, 10)
}

interface HostResponse {
  status: number
  body: Buffer
  headers: IncomingMessage['headers']
}

/** Sends a request for a host to the edge directly, without DNS. */
export function fetchHost(
  edge: Pick<Edge, 'port'>,
  host: string,
  request: Partial<HostRequest & { address: string }> = {},
): Promise<HostResponse> {
  const { address = '127.0.0.1', method = 'GET', path = '/', body = Buffer.alloc(0), headers = {} } = request
  return new Promise((resolve, reject) => {
    const sent = send(
      { host: address, port: edge.port, method, path, headers: { host, ...headers }, agent: false },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            body: Buffer.concat(chunks),
            headers: response.headers,
          }),
        )
      },
    )
    sent.on('error', reject)
    sent.end(body)
  })
}

/**
 * Waits until an edge has accepted the connections that were opened before: it may accept later ones first.
 * Each request takes a turn of its event loop or more, in which every listening socket accepts one.
 */
export async function untilAccepted(edge: Pick<Edge, 'port'>): Promise<void> {
  for (let turn = 0; turn < 30; turn++) await fetchHost(edge, 'x', { path: '/.adit/health' })
}

interface HostRequest {
  method: string
  path: string
  body: Buffer
  headers: Record<string, string>
}

export async function openSocket(
  edge: Pick<Edge, 'port'>,
  host: string,
  { headers = {} }: Partial<HostRequest> = {},
): Promise<WebSocket> {
  const socket = new WebSocket(`ws://127.0.0.1:${edge.port}/`, { headers: { host, ...headers } })
  await once(socket, 'open')
  return socket
}

interface Closed {
  host: string
  workspace: string
  reason: string
  requests: number
  bytesIn: number
  bytesOut: number
}

/** The usage of each closed tunnel, from the log of its edge. */
export const closedTunnels = (log: string): Closed[] =>
  (log.match(/^\{.*"tunnel closed"\}$/gm) ?? []).map((line) => JSON.parse(line))
