// A tunnel client that is connected to another edge, as ingress of the entry edge uses it.
import type { TunnelEvent, TunnelType } from '../../tunnel-protocol/protocol.ts'
import type { YamuxStream } from '../../yamux/index.ts'
import { ConnectionPool } from '../local-server/connection-pool.ts'
import { SilenceDetector } from '../tunnels/silence-detector.ts'
import type { UpstreamClient } from '../tunnels/upstream-client.ts'
import type { PeerLink } from './link.ts'
import { type DescribedClient, type Description, formatHead } from './messages.ts'

export class RemoteClient implements UpstreamClient {
  readonly workspace: string
  readonly keyHash: string
  readonly target: string | undefined
  readonly hostHeader: string | undefined
  readonly totals = { requests: 0, bytesIn: 0, bytesOut: 0 }
  isDraining = false
  isClosed = false
  active = 0
  readonly silence = new SilenceDetector(() => this.link.probe(this.id))
  readonly link: PeerLink
  readonly #host: string
  readonly #type: TunnelType
  readonly #client: DescribedClient
  /** The head of each stream. */
  #head: Buffer
  #connections: ConnectionPool
  readonly #drainListeners = new Set<() => void>()

  constructor(
    link: PeerLink,
    { host, type, workspace, revision }: Pick<Description, 'host' | 'type' | 'workspace' | 'revision'>,
    client: DescribedClient,
  ) {
    this.link = link
    this.#host = host
    this.#type = type
    this.workspace = workspace
    this.#client = client
    this.keyHash = client.keyHash
    this.target = client.target
    this.hostHeader = client.hostHeader
    this.#head = this.#formatHead(revision)
    this.#connections = this.#createPool()
  }

  get id(): string {
    return this.#client.id
  }

  /** The client, or the connection with its edge. */
  get isSilent(): boolean {
    return this.silence.isSilent || this.link.isSilent
  }

  get connections(): ConnectionPool {
    return this.#connections
  }

  /** Access rules have changed: no further request uses a stream that was opened before. */
  setRevision(revision: number): void {
    this.#head = this.#formatHead(revision)
    this.#connections.drain()
    this.#connections = this.#createPool()
  }

  start(): void {
    this.active += 1
  }

  finish(): void {
    this.active -= 1
  }

  send(event: TunnelEvent): void {
    const client = this.id
    if (event.event === 'request') this.link.sendEvent({ client, request: event })
    else if (event.event === 'connection') this.link.sendEvent({ client, connection: event })
  }

  onDraining(listener: () => void): () => void {
    if (this.isDraining) listener()
    this.#drainListeners.add(listener)
    return () => this.#drainListeners.delete(listener)
  }

  openStream(): YamuxStream {
    return this.link.openStream(this.#head)
  }

  /** It gets no further requests; those in progress are completed. */
  drain(): void {
    this.isDraining = true
    this.#connections.drain()
    for (const listener of this.#drainListeners) listener()
  }

  /** The session with its edge is closed. */
  close(): void {
    this.isClosed = true
    this.drain()
  }

  #formatHead(revision: number): Buffer {
    return formatHead({ host: this.#host, client: this.id, revision, type: this.#type })
  }

  #createPool(): ConnectionPool {
    return new ConnectionPool(() => this.openStream(), this.#client.idleConnections)
  }
}
