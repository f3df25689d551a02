// The tunnel client: keeps a tunnel to a local server open at an edge. It reconnects when the edge or the
// network fails, and stops only when the edge rejects or closes the tunnel.
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FindProxy } from '../lib/net/proxy/settings.ts'
import type {
  Opened,
  ProxiedConnection,
  ProxiedRequest,
  RequestedAccess,
  TunnelRequest,
  TunnelType,
} from '../tunnel-protocol/protocol.ts'
import { TunnelRejected } from './connect.ts'
import { type EdgeConnection, openConnection } from './edge-connection.ts'
import type { StreamServer } from './local-server.ts'

const BACKOFF_MIN_MS = 250
/** Long, so that an edge that restarts is not kept busy by clients that it cannot serve yet. */
export const BACKOFF_MAX_MS = 30_000
/** Many, because opening a connection to the local server costs more than a small request. */
const IDLE_CONNECTIONS = 500
/** A tunnel that was open for longer resets the backoff. */
const STABLE_AFTER_MS = 1_000
/** The edge closes idle streams at once; streams still open after this long are requests in progress. */
const IDLE_STREAMS_MS = 300
export const DRAIN_MS = 10_000
/** Earlier connections that may complete their streams; an edge could ask for new ones without end. */
export const DRAINING_CONNECTIONS_MAX = 4
/** Codes of rejections that are final even for a tunnel that was open before. */
const PERMANENT = new Set([
  'unauthorized',
  'not_provisioned',
  'invalid_request',
  'tcp_disabled',
  'access_unsupported',
  'proxy_rejected',
  'closed',
])

export interface TunnelOptions {
  /** Base URL of the edge. */
  readonly edge: string
  readonly key: string
  /** The proxy of connections to the edge; undefined for none. */
  readonly findProxy: FindProxy | undefined
  /** Gets the streams of the tunnel. */
  readonly localServer: StreamServer
  readonly type: TunnelType
  readonly name: string | undefined
  /** Join the clients of the workspace that already serve the name. */
  readonly pool: boolean
  readonly access?: RequestedAccess | undefined
  /** See TunnelRequest. */
  readonly target?: string | undefined
  readonly hostHeader?: string | undefined
  /** Name and version of the client, for the log of the edge. */
  readonly client?: string
  /** Stops the tunnel: requests in progress are completed. */
  readonly signal: AbortSignal
  /** Resets the requests in progress that still delay the stop after `signal`. */
  readonly abortSignal?: AbortSignal
  /** How long requests in progress may take after `signal`. */
  readonly drainMs?: number
  /** Called each time the tunnel is open, also after a reconnection. */
  onOpen(opened: Opened): void
  onLost(reason: string): void
  onRequest(request: ProxiedRequest): void
  onConnection(connection: ProxiedConnection): void
  /** The edge has a message for the user. */
  onNotice(message: string): void
  /** The tunnel waits for this many requests or connections before it stops. */
  onDrain?(inProgress: number): void
}

/** Resolves when the tunnel is stopped. Rejects with TunnelRejected if the edge rejects or closes it. */
export async function runTunnel(options: TunnelOptions): Promise<void> {
  const connections = new Set<EdgeConnection>()
  try {
    await keepOpen(options, connections)
  } finally {
    await drain(options, connections)
  }
}

/** Adds its connections: the last is the current one, and earlier ones are completing their streams. */
async function keepOpen(options: TunnelOptions, connections: Set<EdgeConnection>): Promise<void> {
  const { signal } = options
  const resume = randomBytes(24).toString('base64url')
  let opened: Opened | undefined
  let backoffMs = 0
  /** Reported after the next attempt, which is rejected with the actual reason if the key was revoked. */
  let lossReason: string | undefined
  const onOpen = (current: Opened) => {
    if (lossReason !== undefined) options.onLost(lossReason)
    lossReason = undefined
    options.onOpen(current)
  }
  while (!signal.aborted) {
    // Jitter, so that clients do not reconnect simultaneously after a restart of the edge.
    await sleep(backoffMs * Math.random(), undefined, { signal }).catch(() => undefined)
    if (signal.aborted) return
    try {
      const request = toRequest(options, resume, opened)
      const isReconnect = opened !== undefined
      const connection = await openConnection({ ...options, request, isReconnect, onOpen })
      const openedAt = performance.now()
      connections.add(connection)
      const [oldest] = connections
      if (connections.size > DRAINING_CONNECTIONS_MAX + 1) oldest?.close()
      connection.closed.then(() => connections.delete(connection))
      opened = connection.opened
      lossReason = await connection.lossReason
      backoffMs = performance.now() - openedAt > STABLE_AFTER_MS ? BACKOFF_MIN_MS : nextBackoff(backoffMs)
    } catch (error) {
      if (isFinal(error, opened)) throw error
      if (signal.aborted) return
      options.onLost(lossReason ?? (error as Error).message)
      lossReason = undefined
      backoffMs = nextBackoff(backoffMs)
    }
  }
}

/** `resume` lets the edge replace a previous connection whose loss it has not noticed. */
const toRequest = (
  { type, name, pool, client, access, target, hostHeader }: TunnelOptions,
  resume: string,
  previous: Opened | undefined,
): TunnelRequest => ({
  ...{ type, resume, client, access, target, hostHeader },
  name: previous?.name ?? name,
  pool: pool || undefined,
  idleConnections: type === 'http' ? IDLE_CONNECTIONS : undefined,
})

/**
 * A tunnel that was open is opened again in spite of errors that may pass: a proxy in front of the edge has
 * errors of its own, and the name or the last free slot may be that of a connection whose loss the edge has
 * not noticed.
 */
const isFinal = (error: unknown, opened: Opened | undefined) =>
  error instanceof TunnelRejected && (opened === undefined || PERMANENT.has(error.code))

const nextBackoff = (backoffMs: number) => Math.min(Math.max(backoffMs, BACKOFF_MIN_MS) * 2, BACKOFF_MAX_MS)

async function drain(
  { drainMs = DRAIN_MS, abortSignal, onDrain }: TunnelOptions,
  connections: ReadonlySet<EdgeConnection>,
): Promise<void> {
  if (connections.size === 0) return
  const closeAll = () => {
    for (const connection of connections) connection.close()
  }
  const report = () => {
    let streams = 0
    for (const connection of connections) streams += connection.streams
    if (streams > 0) onDrain?.(streams)
  }
  const timers = [setTimeout(closeAll, drainMs), setTimeout(report, IDLE_STREAMS_MS)]
  abortSignal?.addEventListener('abort', closeAll)
  if (abortSignal?.aborted) closeAll()
  await Promise.all(Array.from(connections, (connection) => connection.drain()))
  abortSignal?.removeEventListener('abort', closeAll)
  for (const timer of timers) clearTimeout(timer)
}
