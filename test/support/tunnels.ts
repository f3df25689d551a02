// Tunnels as people use them: control plane, edges and other ends as processes, a local server behind, visitors in front.
import { once } from 'node:events'
import { createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { WebSocket, WebSocketServer } from 'ws'
import { atEnd, type Test } from './cleanup.ts'
import { createDatabase, createFolder } from './databases.ts'
import { freePort } from './ports.ts'
import { type RunningProcess, run, startProcess, startServing } from './process.ts'

export interface Plane extends RunningProcess {
  url: string
  env: Record<string, string>
  /** Runs a command of the operator's, and gives what it prints. */
  admin(...words: string[]): Promise<string>
  restart(): Promise<Plane>
}

/** A control plane with a workspace for each name. */
export async function startPlane(t: Test, ...slugs: string[]): Promise<Plane> {
  const env = {
    ADIT_DATABASE_URL: await createDatabase(t, 'sqlite'),
    ADIT_PORT: String(await freePort()),
    ADIT_LOG_LEVEL: 'warn',
  }
  async function admin(...words: string[]): Promise<string> {
    const { code, stdout, stderr } = await run(t, ['admin', ...words], env)
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
  restart(): Promise<Edge>
}

/** Of a control plane, or with `words` and `env` of another kind. */
export async function startTunnelEdge(
  t: Test,
  { plane, words = [], env = {} }: { plane?: Plane; words?: string[]; env?: Record<string, string> },
): Promise<Edge> {
  const access = plane && {
    ADIT_URL: plane.url,
    ADIT_EDGE_KEY: await plane.admin('edge', 'create', `edge-${await freePort()}`),
    ADIT_EDGE_FOLDER: join(createFolder(t), 'edge'),
  }
  const settings = { ...access, ADIT_EDGE_PORT: String(await freePort()), ...env }
  const start = async (): Promise<Edge> => {
    const running = startProcess(t, ['edge', ...words, '--json'], settings)
    const [line] = await running.says(/^\{.*\}$/m)
    const { url } = JSON.parse(line) as { url: string }
    return { ...running, url, port: Number(new URL(url).port), restart: start }
  }
  return start()
}

export interface TunnelEvent {
  event: 'open' | 'request' | 'lost'
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
export async function openTunnel(
  t: Test,
  { edge, key, port, name }: { edge: Edge; key: string; port: number; name?: string },
): Promise<OpenTunnel> {
  const running = startTunnel(t, { edge, key, port, ...(name && { name }) })
  await running.says(/"event":"open"/)
  const { url = '', host = '' } = running.events()[0] as TunnelEvent
  return { ...running, url, host }
}

interface TunnelOptions {
  edge: Pick<Edge, 'url'>
  key: string
  port: number
  name?: string
  env?: Record<string, string>
}

export function startTunnel(t: Test, { edge, key, port, name, env = {} }: TunnelOptions) {
  const words = ['tunnel', String(port), ...(name ? ['--name', name] : []), '--edge', edge.url, '--json']
  const running = startProcess(t, words, { ADIT_API_KEY: key, ...env })
  let said = ''
  running.child.stdout?.on('data', (chunk) => {
    said += chunk
  })
  const events = () => (said.match(/^\{.*\}$/gm) ?? []).map((line) => JSON.parse(line) as TunnelEvent)
  return { ...running, events }
}

/** What people have running on their machines: it tells what it was sent, sends what it is asked for, and echoes. */
export async function startLocal(t: Test): Promise<{ port: number; heard: IncomingMessage[] }> {
  const heard: IncomingMessage[] = []
  const server = createServer((visit, answer) => {
    heard.push(visit)
    // Not everybody reads what they are sent before they answer.
    if (visit.url === '/early') return void answer.end('no')
    const [, kind, size] = /^\/(bytes|drip)\/(\d+)$/.exec(visit.url ?? '') ?? []
    let received = 0
    visit.on('data', (chunk) => {
      received += chunk.length
    })
    visit.on('end', () => {
      if (kind === 'bytes') answer.end(Buffer.alloc(Number(size), 'x'))
      else if (kind === 'drip') drip(answer, Number(size))
      else answer.end(JSON.stringify({ received, headers: visit.headers, url: visit.url }))
    })
  })
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket) => {
    socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
    socket.on('error', () => socket.terminate())
  })
  server.listen(0, 'localhost')
  await once(server, 'listening')
  atEnd(t, () => {
    for (const socket of sockets.clients) socket.terminate()
    server.close()
    server.closeAllConnections()
  })
  return { port: (server.address() as AddressInfo).port, heard }
}

const PIECE = Buffer.alloc(10_000, 'd')

/** So many pieces, one after the other. */
function drip(answer: NodeJS.WritableStream & { destroyed?: boolean }, pieces: number): void {
  let left = pieces
  const timer = setInterval(() => {
    if (answer.destroyed || left <= 0) {
      clearInterval(timer)
      answer.end()
    } else {
      left -= 1
      answer.write(PIECE)
    }
  }, 10)
}

export interface Visited {
  status: number
  body: Buffer
  headers: IncomingMessage['headers']
}

/** A request to a host name, at the edge: no DNS is needed to try what comes after it. */
export function visit(
  edge: Pick<Edge, 'port'>,
  host: string,
  { method = 'GET', path = '/', body = Buffer.alloc(0), headers = {} }: Partial<VisitOptions> = {},
): Promise<Visited> {
  return new Promise((resolve, reject) => {
    const asked = request(
      { host: '127.0.0.1', port: edge.port, method, path, headers: { host, ...headers }, agent: false },
      (answer) => {
        const chunks: Buffer[] = []
        answer.on('data', (chunk) => chunks.push(chunk))
        answer.on('error', reject)
        answer.on('end', () =>
          resolve({ status: answer.statusCode ?? 0, body: Buffer.concat(chunks), headers: answer.headers }),
        )
      },
    )
    asked.on('error', reject)
    asked.end(body)
  })
}

interface VisitOptions {
  method: string
  path: string
  body: Buffer
  headers: Record<string, string>
}

export async function openSocket(
  edge: Pick<Edge, 'port'>,
  host: string,
  { headers = {} }: Partial<VisitOptions> = {},
): Promise<WebSocket> {
  const socket = new WebSocket(`ws://127.0.0.1:${edge.port}/`, { headers: { host, ...headers } })
  await once(socket, 'open')
  return socket
}

export interface Closed {
  host: string
  workspace: string
  ending: string
  requests: number
  bytesIn: number
  bytesOut: number
}

/** What an edge has counted for each tunnel, by its own log. */
export const closedTunnels = (log: string): Closed[] =>
  (log.match(/^\{.*"tunnel closed"\}$/gm) ?? []).map((line) => JSON.parse(line))
