// The tunnel client: keeps a tunnel to a local server open at one edge or several. It reconnects when an edge
// or the network fails, and stops only when an edge rejects or closes the tunnel.
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
import { acceptEdges } from './edge-url.ts'
import type { EventHandlers } from './events.ts'
import { ExtraConnections } from './extra-connections.ts'
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
/** An edge tells all of its clients at the same time that another one has appeared. */
const OTHER_EDGES_JITTER_MS = 10_000
/** Codes of rejections that are final at any edge. */
const PERMANENT_ANYWHERE = new Set(['unauthorized', 'not_provisioned', 'closed'])
/** Codes of rejections that are final even for a tunnel that was open before, if no other edge has it. */
const PERMANENT = new Set([
  ...PERMANENT_ANYWHERE,
  'invalid_request',
  'tcp_disabled',
  'access_unsupported',
  'proxy_rejected',
])
/** Edges at which a tunnel is open by default. */
const EDGES_DEFAULT = 2
export const EDGES_MAX = 4

export interface TunnelOptions {
  /** Base URL of the first edge. */
  readonly edge: string
  /** To how many edges the tunnel keeps a connection, if there are others; 2 by default. */
  readonly edges?: number | undefined
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
  /** Called when the first connection is open, also again after all were lost. */
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
  const run = new TunnelRun(options)
  try {
    await run.keepOpen()
  } finally {
    await drain(options, run.connections)
  }
}

/** One of the connections that a tunnel keeps open, each to another edge. */
interface Slot {
  /** Lets an edge replace an earlier connection whose loss it has not noticed. */
  resume: string
  /** The URL of the last attempt. */
  url: string | undefined
  /** The URL by which the edge of the open connection is known to others. */
  publicUrl: string | undefined
  /** What the edge of the last open connection has named. */
  otherEdges: readonly string[]
  isOpen: boolean
  /** The last one. */
  connection: EdgeConnection | undefined
}

type ConnectionHandlers = Pick<EventHandlers, 'onOpen' | 'onOtherEdges' | 'onConnectionRequested'> &
  Partial<Pick<EventHandlers, 'onNotice'>>

const newSecret = () => randomBytes(24).toString('base64url')

/** To the user, all connections are one tunnel: it is lost when none of them is left. */
class TunnelRun {
  /** The current ones, and earlier ones that are completing their streams. */
  readonly connections = new Set<EdgeConnection>()
  readonly #options: TunnelOptions
  readonly #session = newSecret()
  readonly #slots: Slot[]
  readonly #extra = new ExtraConnections((edge) => this.#openExtra(edge))
  /** Ends all slots, when one of them fails or the tunnel is stopped. */
  readonly #end = new AbortController()
  #edgesChanged = Promise.withResolvers<void>()
  #edgesTimer: NodeJS.Timeout | undefined
  #opened: Opened | undefined
  /** Reported after the next attempt, which is rejected with the actual reason if the key was revoked. */
  #lossReason: string | undefined

  constructor(options: TunnelOptions) {
    this.#options = options
    this.#slots = Array.from({ length: options.edges ?? EDGES_DEFAULT }, () => ({
      resume: newSecret(),
      url: undefined,
      publicUrl: undefined,
      otherEdges: [],
      isOpen: false,
      connection: undefined,
    }))
    const { signal } = this.#end
    signal.addEventListener('abort', () => this.#edgesChanged.resolve(), { once: true })
    // The first Node 20 has no AbortSignal.any.
    options.signal.addEventListener('abort', () => this.#end.abort(), { once: true, signal })
    if (options.signal.aborted) this.#end.abort()
  }

  async keepOpen(): Promise<void> {
    const slots = this.#slots.map((slot) => this.#keepSlotOpen(slot))
    try {
      await Promise.all(slots)
    } finally {
      this.#end.abort()
      await Promise.allSettled(slots)
    }
  }

  get #isOpen(): boolean {
    return this.#extra.isOpen || this.#slots.some(({ isOpen }) => isOpen)
  }

  async #keepSlotOpen(slot: Slot): Promise<void> {
    const { signal } = this.#end
    let backoffMs = 0
    while (!signal.aborted) {
      // Jitter, so that clients do not reconnect simultaneously after a restart of the edge.
      await sleep(backoffMs * Math.random(), undefined, { signal }).catch(() => undefined)
      const edge = this.#nextEdge(slot)
      if (edge === undefined) await this.#edgesChanged.promise
      if (signal.aborted) return
      if (edge === undefined) continue
      slot.url = edge
      try {
        const connection = await this.#connect(slot, edge)
        const openedAt = performance.now()
        const lossReason = await connection.lossReason.finally(() => {
          slot.isOpen = false
        })
        // The edge drains: the connection completes its streams, and must not be replaced by the next one.
        if (lossReason === undefined) slot.resume = newSecret()
        if (!this.#isOpen) this.#lossReason = lossReason
        backoffMs = performance.now() - openedAt > STABLE_AFTER_MS ? BACKOFF_MIN_MS : nextBackoff(backoffMs)
      } catch (error) {
        if (this.#isFinal(error)) throw error
        if (signal.aborted) return
        this.#reportLoss((error as Error).message)
        backoffMs = nextBackoff(backoffMs)
      }
    }
  }

  /** The next edge in turn that no other slot uses, the first one last. Undefined if there is none. */
  #nextEdge(slot: Slot): string | undefined {
    const [first] = this.#slots
    if (this.#opened === undefined) return slot === first ? this.#options.edge : undefined
    const used = new Set(
      this.#slots.flatMap((other) => (other === slot ? [] : [other.url, other.isOpen && other.publicUrl])),
    )
    const known = new Set(this.#slots.flatMap(({ otherEdges }) => otherEdges))
    // No edge may have named the last one again since it was lost.
    if (slot.url !== undefined) known.add(slot.url)
    known.add(this.#options.edge)
    const edges = [...known].filter((edge) => !used.has(edge))
    return edges[(edges.indexOf(slot.url ?? '') + 1) % edges.length]
  }

  async #connect(slot: Slot, edge: string): Promise<EdgeConnection> {
    const connection = await this.#open(edge, slot.resume, {
      onOpen: (opened) => this.#onOpen(slot, edge, opened),
      onOtherEdges: (urls) => this.#onOtherEdges(slot, edge, urls),
      onConnectionRequested: () => void this.#extra.add(slot.publicUrl ?? edge),
    })
    slot.connection = connection
    const current = this.#slots.map((each) => each.connection)
    const draining = [...this.connections].filter((each) => !current.includes(each) && !this.#extra.has(each))
    if (draining.length > DRAINING_CONNECTIONS_MAX) draining[0]?.close()
    return connection
  }

  /** What it is told, the first connection is told, too. */
  #openExtra(edge: string): Promise<EdgeConnection> {
    return this.#open(edge, newSecret(), {
      extra: true,
      onOpen() {},
      onOtherEdges() {},
      onNotice() {},
      onConnectionRequested: () => void this.#extra.add(edge),
    })
  }

  async #open(
    edge: string,
    resume: string,
    { extra, ...handlers }: Pick<TunnelRequest, 'extra'> & ConnectionHandlers,
  ): Promise<EdgeConnection> {
    const secrets = { resume, session: this.#session }
    const connection = await openConnection({
      ...this.#options,
      ...handlers,
      edge,
      signal: this.#end.signal,
      request: { ...toRequest(this.#options, secrets, this.#opened), extra },
      isReconnect: this.#opened !== undefined,
    })
    this.connections.add(connection)
    connection.closed.then(() => this.connections.delete(connection))
    return connection
  }

  #onOpen(slot: Slot, edge: string, opened: Opened): void {
    const isFirst = !this.#isOpen
    const [publicUrl] = acceptEdges(opened.edge === undefined ? [] : [opened.edge], edge)
    Object.assign(slot, { isOpen: true, publicUrl, otherEdges: acceptEdges(opened.edges ?? [], edge) })
    this.#opened = opened
    this.#wakeSlots()
    if (!isFirst) return
    if (this.#lossReason !== undefined) this.#options.onLost(this.#lossReason)
    this.#lossReason = undefined
    this.#options.onOpen(opened)
  }

  #onOtherEdges(slot: Slot, edge: string, urls: readonly string[]): void {
    slot.otherEdges = acceptEdges(urls, edge)
    this.#edgesTimer ??= setTimeout(() => {
      this.#edgesTimer = undefined
      this.#wakeSlots()
    }, Math.random() * OTHER_EDGES_JITTER_MS).unref()
  }

  /** Those that had no edge to connect to. */
  #wakeSlots(): void {
    this.#edgesChanged.resolve()
    this.#edgesChanged = Promise.withResolvers()
  }

  /** A connection failed; while another one is open, the user need not know. */
  #reportLoss(message: string): void {
    if (this.#isOpen) return
    this.#options.onLost(this.#lossReason ?? message)
    this.#lossReason = undefined
  }

  /**
   * A tunnel that was open is opened again in spite of errors that may pass: a proxy in front of the edge has
   * errors of its own, and the name or the last free slot may be that of a connection whose loss the edge has
   * not noticed. Another edge may have other settings.
   */
  #isFinal(error: unknown): boolean {
    if (!(error instanceof TunnelRejected)) return false
    return this.#opened === undefined || (this.#isOpen ? PERMANENT_ANYWHERE : PERMANENT).has(error.code)
  }
}

const toRequest = (
  { type, name, pool, client, access, target, hostHeader }: TunnelOptions,
  secrets: Required<Pick<TunnelRequest, 'resume' | 'session'>>,
  previous: Opened | undefined,
): TunnelRequest => ({
  ...{ type, client, access, target, hostHeader },
  ...secrets,
  name: previous?.name ?? name,
  pool: pool || undefined,
  idleConnections: type === 'http' ? IDLE_CONNECTIONS : undefined,
})

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
