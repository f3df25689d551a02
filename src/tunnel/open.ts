// Opens a tunnel for a program, as `adit tunnel` does for a user.
import { X509Certificate } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { createClient } from '../client/index.ts'
import { HOST_HEADER_RULE, isHost } from '../lib/net/host-header.ts'
import { createFetch } from '../lib/net/proxy/fetch.ts'
import { type FindProxy, parseProxyUrl } from '../lib/net/proxy/settings.ts'
import { TunnelRejected } from '../tunnel-client/connect.ts'
import type { TlsOptions } from '../tunnel-client/dialer.ts'
import { toEdgeUrl } from '../tunnel-client/edge-url.ts'
import { LocalServer } from '../tunnel-client/local-server.ts'
import { EDGES_MAX, runTunnel } from '../tunnel-client/run.ts'
import { parseTarget } from '../tunnel-client/target.ts'
import { parseAccess } from '../tunnel-protocol/requested-access.ts'
import type { OpenTunnelOptions, TunnelEvents } from './types.ts'

/** `code` is `unreachable`, `closed`, or a code of the edge such as `unauthorized`. */
export class TunnelError extends Error {
  override name = 'TunnelError'
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/** An open tunnel. It reconnects automatically until it is closed. */
export class Tunnel extends EventEmitter<TunnelEvents> {
  readonly #stop = new AbortController()
  #opened = { url: '', host: '', name: '' }
  #finished: Promise<void> = Promise.resolve()

  private constructor() {
    super()
  }

  /** The public URL. */
  get url(): string {
    return this.#opened.url
  }

  get host(): string {
    return this.#opened.host
  }

  get name(): string {
    return this.#opened.name
  }

  /** Completes the requests in progress, and resolves when the tunnel is closed. */
  async close(): Promise<void> {
    this.#stop.abort()
    await this.#finished
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** @internal */
  static async open(options: OpenTunnelOptions): Promise<Tunnel> {
    const { signal, apiKey, pool = false, type = 'http', name, hostHeader } = options
    const { url, origin, target } = readTarget(options)
    const access = readAccess(options)
    signal?.throwIfAborted()
    const findProxy = readProxy(options)
    const edge = await findEdge(options, findProxy)
    const tunnel = new Tunnel()
    let isOpen = false
    let isReachable = true
    await new Promise<void>((resolve, reject) => {
      tunnel.#finished = runTunnel({
        edge,
        edges: readEdges(options),
        key: apiKey,
        type,
        name,
        pool,
        access,
        target: type === 'http' ? origin : undefined,
        hostHeader,
        client: 'adit-tunnel',
        findProxy,
        localServer: new LocalServer({
          target,
          isHttp: type === 'http',
          onProblem(_, message) {
            const text = `The local server at ${url} cannot be reached: ${message}.`
            if (isReachable) tunnel.emit('unreachable', text)
            isReachable = false
          },
          onReachable() {
            isReachable = true
          },
        }),
        signal: signal ? AbortSignal.any([signal, tunnel.#stop.signal]) : tunnel.#stop.signal,
        ...(options.drainMs !== undefined && { drainMs: options.drainMs }),
        onOpen(opened) {
          tunnel.#opened = opened
          if (isOpen) tunnel.emit('reconnected')
          isOpen = true
          resolve()
        },
        onLost(reason) {
          if (isOpen) return void tunnel.emit('lost', reason)
          // `adit tunnel` would retry; a program gets the error and can decide.
          tunnel.#stop.abort()
          reject(new TunnelError('unreachable', reason))
        },
        onRequest: (request) => tunnel.emit('request', request),
        onConnection: (connection) => tunnel.emit('connection', connection),
        onNotice: (message) => tunnel.emit('notice', message),
      }).then(
        () => end(undefined),
        (error) => end(error instanceof TunnelRejected ? new TunnelError(error.code, error.message) : error),
      )
      function end(error: Error | undefined): void {
        if (isOpen) tunnel.emit('close', error)
        else reject(error ?? signal?.reason ?? new TunnelError('closed', 'The tunnel was closed.'))
      }
    })
    return tunnel
  }
}

/** Resolves when the tunnel is open. Rejects if the edge cannot be reached, or rejects it. */
export const openTunnel = (options: OpenTunnelOptions): Promise<Tunnel> => Tunnel.open(options)

function readTarget(options: OpenTunnelOptions) {
  const { target, type = 'http', hostHeader } = options
  if (hostHeader !== undefined && !isHost(hostHeader))
    throw new TypeError(`Invalid hostHeader (expected ${HOST_HEADER_RULE}).`)
  return parseTarget(type, String(target), readTls(options), { tls: 'insecure and ca' })
}

function readTls({ insecure = false, ca }: OpenTunnelOptions): TlsOptions | undefined {
  if (ca === undefined) return insecure ? { isInsecure: true } : undefined
  if (insecure) throw new TypeError('insecure accepts any certificate, so ca has no effect. Use one of them.')
  try {
    new X509Certificate(ca)
  } catch {
    throw new TypeError('Invalid ca (expected certificates in PEM).')
  }
  return { ca, isInsecure: false }
}

function readEdges({ edges }: OpenTunnelOptions): number | undefined {
  if (edges !== undefined && !(Number.isInteger(edges) && edges >= 1 && edges <= EDGES_MAX))
    throw new TypeError(`Invalid edges (expected 1 to ${EDGES_MAX}).`)
  return edges
}

const readAccess = ({ type = 'http', basicAuth, allowIp = [] }: OpenTunnelOptions) =>
  basicAuth === undefined && allowIp.length === 0 ? undefined : parseAccess(type, { basicAuth, allowIp })

function readProxy({ proxy }: OpenTunnelOptions): FindProxy | undefined {
  if (proxy === undefined) return undefined
  const parsed = parseProxyUrl(proxy, 'proxy')
  return () => parsed
}

async function findEdge(
  { url, edge, apiKey, signal }: OpenTunnelOptions,
  findProxy: FindProxy | undefined,
): Promise<string> {
  if (edge !== undefined) return new URL(edge).href.replace(/\/+$/, '')
  if (url === undefined) throw new TypeError('Missing url (of the server) or edge.')
  const client = createClient({ baseUrl: url, apiKey, ...(findProxy && { fetch: createFetch(findProxy) }) })
  return toEdgeUrl(await client.edge.find(undefined, signal ? { signal } : {}), url).edge
}
