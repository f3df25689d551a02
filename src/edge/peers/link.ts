// The connection to a peer that has clients of tunnels: opened at the first need, kept, and opened again
// after a failure, with increasing delays.
import type { Socket } from 'node:net'
import type { Cluster } from '../../edge-sdk/index.ts'
import { createLease } from '../../lib/credentials/lease.ts'
import { Session, type YamuxStream } from '../../yamux/index.ts'
import { EventWriter } from '../tunnels/event-writer.ts'
import { PROBE_TIMEOUT_MAX_MS } from '../tunnels/silence-detector.ts'
import { sessionOptions, toConnection } from './connection.ts'
import { readLines } from './control-lines.ts'
import {
  type ClientEvent,
  type Description,
  type EntryMessage,
  parseServingMessage,
  type Subject,
} from './messages.ts'
import type { PeerTransport } from './transport.ts'

const DESCRIBE_TIMEOUT_MS = 3_000
/**
 * The entry edge passes on nothing of a peer whose last response to a ping is older: it may have been
 * stopped, with bytes in its buffers that it must not carry any more. The peer does not wait longer for it.
 */
export const LINK_LEASE_MS = 5_000
const RENEW_MS = 1_000
const RETRY_MIN_MS = 100
const RETRY_MAX_MS = 5_000

interface LinkOptions {
  readonly cluster: Cluster
  readonly transport: Pick<PeerTransport, 'connect'>
  readonly pressure: { readonly isHigh: boolean }
  onTunnel(link: PeerLink, description: Description): void
  onGone(link: PeerLink, host: string): void
  /** Ends what came from these clients of the peer, before it returns. */
  onEnd(link: PeerLink, subject: Subject): void
  onTransfer(): void
  /** The worker of the peer is stopping, and serves requests until another one takes its place. */
  onReplaced(link: PeerLink): void
  /** All streams are reset, and nothing is known of the tunnels of the peer any more. */
  onClosed(link: PeerLink): void
}

export class PeerLink {
  readonly peerId: string
  readonly #options: LinkOptions
  #session: Session | undefined
  #control: { stream: YamuxStream; writer: EventWriter } | undefined
  #connecting: Promise<void> | undefined
  /** Descriptions that were asked for. */
  readonly #pending = new Map<string, PromiseWithResolvers<void>>()
  /** Probes of clients that have no response. */
  readonly #probes = new Map<string, PromiseWithResolvers<void>>()
  /** When the session was probed, until it responds. */
  #probedAt: number | undefined
  readonly #lease = createLease(Date.now)
  #renewal: NodeJS.Timeout | undefined
  #failures = 0
  #retryAt = 0
  #isClosed = false

  constructor(peerId: string, options: LinkOptions) {
    this.peerId = peerId
    this.#options = options
  }

  /** Resolves after `onTunnel` or `onGone` was called for the host; rejects if the peer cannot be reached. */
  async describe(host: string): Promise<void> {
    if (!this.#session) await this.#connectOnce()
    const pending = this.#pending.get(host)
    if (pending) return pending.promise
    const asked = Promise.withResolvers<void>()
    this.#pending.set(host, asked)
    const timeout = setTimeout(() => asked.reject(new Error('timeout')), DESCRIBE_TIMEOUT_MS).unref()
    this.#sendNow({ describe: host })
    try {
      await asked.promise
    } finally {
      clearTimeout(timeout)
      if (this.#pending.get(host) === asked) this.#pending.delete(host)
    }
  }

  get isConnected(): boolean {
    return this.#session !== undefined
  }

  /** The peer does not respond to a probe. */
  get isSilent(): boolean {
    return this.#probedAt !== undefined && performance.now() - this.#probedAt > PROBE_TIMEOUT_MAX_MS
  }

  /** Resolves when a client responds. A probe of the session says whether the peer is the reason if not. */
  async probe(client: string): Promise<void> {
    if (!this.#session) throw new Error('The session with the peer is closed.')
    this.#probedAt ??= performance.now()
    const onResponse = () => {
      this.#probedAt = undefined
    }
    this.#session.probe().then(onResponse, onResponse)
    const pending = this.#probes.get(client) ?? Promise.withResolvers<void>()
    this.#probes.set(client, pending)
    this.#sendNow({ probe: client })
    await pending.promise
  }

  /** Throws if there is no session. What is written until the next turn leaves together with the head. */
  openStream(head: Buffer): YamuxStream {
    if (!this.#session) throw new Error('The session with the peer is closed.')
    const stream = this.#session.open()
    stream.on('error', () => {})
    stream.cork()
    stream.write(head)
    process.nextTick(() => stream.uncork())
    return stream
  }

  forget(host: string): void {
    this.#sendNow({ forget: host })
  }

  applied(host: string, revision: number): void {
    this.#sendNow({ applied: host, revision })
  }

  /** Dropped while the peer does not read. */
  sendEvent(event: ClientEvent): void {
    this.#control?.writer.send(event)
  }

  /** For good: the peer has left the cluster, or this edge stops. */
  close(): void {
    this.#isClosed = true
    this.#session?.close()
  }

  #sendNow(message: EntryMessage): void {
    this.#control?.stream.write(`${JSON.stringify(message)}\n`)
  }

  #connectOnce(): Promise<void> {
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined
    })
    return this.#connecting
  }

  async #connect(): Promise<void> {
    const { cluster, transport } = this.#options
    const peer = cluster.peer(this.peerId)
    if (!peer || this.#isClosed) throw new Error('The edge is not a peer.')
    if (performance.now() < this.#retryAt) throw new Error('The last connection failed.')
    const startedAt = this.#lease.now()
    try {
      const socket = await transport.connect(peer)
      this.#lease.renew(startedAt, LINK_LEASE_MS)
      this.#failures = 0
      if (this.#isClosed) socket.destroy()
      else this.#start(socket)
    } catch (error) {
      const delay = Math.min(RETRY_MIN_MS * 2 ** this.#failures, RETRY_MAX_MS)
      this.#failures += 1
      this.#retryAt = performance.now() + delay
      throw error
    }
  }

  #start(socket: Socket): void {
    const session = new Session(toConnection(socket), {
      ...sessionOptions(this.#options.pressure),
      role: 'client',
      // Only the entry edge opens streams.
      maxStreams: 0,
      onStream: (stream) => stream.destroy(),
      onTransfer: () => {
        this.#options.onTransfer()
        if (!this.#lease.isValid()) session.close(new Error('The peer has not responded in time.'))
      },
      onGoAway: () => session.close(),
      onClose: () => this.#onSessionClosed(),
    })
    const stream = session.open()
    stream.on('close', () => session.close())
    this.#session = session
    this.#control = { stream, writer: new EventWriter(stream) }
    this.#renewal = setInterval(() => this.#renew(session), RENEW_MS).unref()
    readLines(
      stream,
      (fields) => this.#onMessage(parseServingMessage(fields)),
      (error) => session.close(error),
    )
  }

  #renew(session: Session): void {
    const from = this.#lease.now()
    session.ping().then(
      () => this.#lease.renew(from, LINK_LEASE_MS),
      () => {},
    )
  }

  #onMessage(message: ReturnType<typeof parseServingMessage>): void {
    if ('probed' in message) {
      this.#probes.get(message.probed)?.resolve()
      this.#probes.delete(message.probed)
      return
    }
    if ('replaced' in message) {
      this.#options.onReplaced(this)
      return
    }
    if ('end' in message) {
      this.#options.onEnd(this, message.subject)
      this.#sendNow({ ended: message.end })
      return
    }
    const host = 'gone' in message ? message.gone : message.tunnel.host
    if ('gone' in message) this.#options.onGone(this, host)
    else this.#options.onTunnel(this, message.tunnel)
    this.#pending.get(host)?.resolve()
  }

  #onSessionClosed(): void {
    this.#session = undefined
    this.#control = undefined
    clearInterval(this.#renewal)
    const error = new Error('The session with the peer closed.')
    for (const { reject } of [...this.#pending.values(), ...this.#probes.values()]) reject(error)
    this.#pending.clear()
    this.#probes.clear()
    this.#options.onClosed(this)
  }
}
