// The registry of open tunnels by host name, and of their clients by id and key.
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import { hashSecret } from '../../lib/credentials/secret.ts'
import type { TunnelClosure, TunnelRequest, TunnelType } from '../../tunnel-protocol/protocol.ts'
import type { AccessRules } from '../access/access-control.ts'
import { type ClientKey, type CloseReason, TunnelClient, type TunnelClientOptions } from './client.ts'
import { type CountRule, TunnelCount, type TunnelMeter } from './count.ts'
import type { TunnelFactory } from './factory.ts'
import type { Tunnel, TunnelAddress } from './tunnel.ts'

const CLIENTS_MAX = 10_000
export const CLIENTS_PER_WORKSPACE_MAX = 500
/** How many clients that were closed on request are remembered; the oldest is evicted first. */
const CLOSURES_MAX = 1_000

export interface RegistryOptions {
  readonly factory: TunnelFactory
  readonly meter: TunnelMeter | undefined
  onOpened(tunnel: Tunnel, client: TunnelClient): void
  onClosed(tunnel: Tunnel, client: TunnelClient, reason: CloseReason): void
  /** Bytes of a client are about to be passed on. It may abort all requests. */
  onTransfer(): void
  /** The rules of a tunnel have changed, or which of its clients take requests. */
  onChanged(tunnel: Tunnel): void
}

/** A client that connects. */
interface NewClient extends Pick<TunnelClientOptions, 'id' | 'address' | 'key' | 'connection'> {
  readonly request: TunnelRequest
  /** Access rules that the client asks for. */
  readonly rules: AccessRules
  /** Access rules of the name. An open tunnel has them already, and ignores these. */
  readonly nameRules: AccessRules
  /** What the control plane says about counting; an open tunnel ignores it. */
  readonly count: CountRule
}

export class Registry {
  readonly #options: RegistryOptions
  readonly #tunnels = new Map<string, Tunnel>()
  readonly #clients = new Map<TunnelClient, Tunnel>()
  readonly #byId = new Map<string, TunnelClient>()
  readonly #byName = new Map<string, Tunnel>()
  readonly #counts = new Map<Tunnel, TunnelCount>()
  /**
   * By the hash of the session, to reject a client that reconnects because it did not receive the closure.
   */
  readonly #closures = new BoundedMap<string, TunnelClosure>(CLOSURES_MAX)
  #isStopping = false
  #isWithdrawn = false
  #isReleased = false

  constructor(options: RegistryOptions) {
    this.#options = options
  }

  /** The edge is stopping: new tunnels are rejected. */
  get isStopping(): boolean {
    return this.#isStopping
  }

  /** Other edges are told that the tunnels are gone. What they have sent before is served. */
  get isWithdrawn(): boolean {
    return this.#isWithdrawn
  }

  /** The names are released: other edges may have them, and forward nothing to this one. */
  get isReleased(): boolean {
    return this.#isReleased
  }

  tunnels(): IteratorObject<Tunnel> {
    return this.#tunnels.values()
  }

  clients(): IteratorObject<TunnelClient> {
    return this.#clients.keys()
  }

  atHost(host: string): Tunnel | undefined {
    return this.#tunnels.get(host)
  }

  /** The limit that prevents another tunnel of a workspace, as a message. */
  limitReached(workspace: string): string | undefined {
    if (this.#clients.size >= CLIENTS_MAX)
      return `This edge is at its limit of ${CLIENTS_MAX} tunnel clients.`
    if (this.#options.factory.clientCount(workspace) >= CLIENTS_PER_WORKSPACE_MAX) return clientLimitMessage()
    return undefined
  }

  /** Why a client with these secrets was closed for good. */
  findClosure(client: ClientSecrets): TunnelClosure | undefined {
    const session = sessionHash(client)
    return session === undefined ? undefined : this.#closures.get(session)
  }

  /** Whether a client with this secret serves the host. */
  hasClient(host: string, resume: string | undefined): boolean {
    const tunnel = this.#tunnels.get(host)
    return tunnel !== undefined && clientWith(tunnel, resume) !== undefined
  }

  /** The connections of one client. */
  #ofSession(host: string, session: string | undefined): TunnelClient[] {
    const clients = this.#tunnels.get(host)?.clients ?? []
    return session === undefined ? [] : [...clients].filter((each) => each.session === session)
  }

  /** Whether a client with this session has a connection here that takes requests. */
  isServedBy(host: string, session: string | undefined): boolean {
    return this.#ofSession(host, session).some(({ isDraining, isSilent }) => !isDraining && !isSilent)
  }

  /**
   * Whether a client may serve the host: nobody does, it joins a pool, replaces its own connection, or adds
   * one to its session.
   */
  mayServe(host: string, type: TunnelType, { pool, resume, session }: TunnelRequest): boolean {
    const tunnel = this.#tunnels.get(host)
    if (!tunnel) return true
    if (tunnel.type !== type) return false
    const isOwn = this.#ofSession(host, session).length > 0 || this.hasClient(host, resume)
    return pool === true || !tunnel.isAvailable || isOwn
  }

  /** The rules that a client has to share: those of other clients of the host. */
  rulesAt(host: string, resume: string | undefined): AccessRules | undefined {
    const tunnel = this.#tunnels.get(host)
    const replaced = tunnel && clientWith(tunnel, resume)
    const hasOthers = tunnel?.clients.values().some((client) => client !== replaced && !client.isDraining)
    return hasOthers ? tunnel?.access.clientRules : undefined
  }

  /** Adds a client. The caller has checked `mayServe` in the same turn of the event loop. */
  connect(
    address: TunnelAddress,
    { request, rules, nameRules, count, ...options }: NewClient,
  ): { tunnel: Tunnel; client: TunnelClient } {
    const { host } = address
    const { workspace } = options.key
    const { factory, meter, onTransfer, onOpened, onChanged } = this.#options
    const existing = this.#tunnels.get(host)
    const { client: software, session, resume, pool, extra, target, hostHeader, idleConnections } = request
    const tunnel = existing ?? factory.create({ address, workspace, clientRules: rules, nameRules })
    const { access, load } = tunnel
    access.clientRules = rules
    const replaced = clientWith(tunnel, resume)
    const client = new TunnelClient({
      ...options,
      ...{ software, session, resume, pool, extra, target, hostHeader, idleConnections },
      pressure: load.buffers,
      onTransfer,
      onDrained: () => this.close(client, 'closed'),
      onClosed: () => this.#remove(client, 'disconnected'),
    })
    tunnel.clients.add(client)
    this.#clients.set(client, tunnel)
    this.#byId.set(client.id, client)
    load.clients += 1
    if (!existing) {
      this.#tunnels.set(host, tunnel)
      this.#byName.set(nameKey(workspace, address.name), tunnel)
      access.onChanged = () => onChanged(tunnel)
      const counting = new TunnelCount(meter, workspace)
      this.#counts.set(tunnel, counting)
      counting.open(count)
    }
    onOpened(tunnel, client)
    const { listener, ...publicAddress } = tunnel.address
    client.announce({
      ...publicAddress,
      access: { basicAuth: access.needsPassword, allowIp: access.limitsAddresses },
    })
    client.onDraining(() => onChanged(tunnel))
    if (replaced) this.close(replaced, 'replaced')
    if (!extra) for (const each of this.#ofSession(host, session)) if (each.isExtra) each.goAway()
    onChanged(tunnel)
    return { tunnel, client }
  }

  close(client: TunnelClient, reason: CloseReason): void {
    this.#remove(client, reason)
    client.close()
  }

  /**
   * The client has a connection at another worker, which replaces this one: requests and connections in
   * progress are completed here, and new ones go there.
   */
  drainMoved(id: string): void {
    const client = this.#byId.get(id)
    if (!client) return
    const tunnel = this.#clients.get(client)
    client.drain()
    if (!tunnel?.isAvailable) tunnel?.address.listener?.close()
  }

  clientById(id: string): TunnelClient | undefined {
    return this.#byId.get(id)
  }

  /**
   * Closes a tunnel for good: its client gets the reason, and is rejected if it reconnects. A client that has
   * reconnected already has another id, and is found by `session`, the hash of its secret.
   */
  closeForGood(
    id: string,
    session: string | undefined,
    closure: TunnelClosure & { reason: CloseReason },
  ): void {
    const client = this.#byId.get(id)
    const closed = session ?? (client && sessionHash(client))
    if (closed) this.#closures.set(closed, closure)
    const clients = client ? [client] : [...this.#clientsOfSession(session)]
    for (const each of clients) {
      this.#remove(each, closure.reason)
      each.close(closure)
    }
  }

  #clientsOfSession(session: string | undefined): Iterable<TunnelClient> {
    if (session === undefined) return []
    return this.#clients.keys().filter((client) => sessionHash(client) === session)
  }

  /** Starts or stops counting an open tunnel. */
  setCount(workspace: string, name: string, count: CountRule): void {
    const tunnel = this.#byName.get(nameKey(workspace, name))
    if (tunnel) this.#counts.get(tunnel)?.set(count)
  }

  setNameRules(workspace: string, name: string, rules: AccessRules | null): void {
    this.#byName.get(nameKey(workspace, name))?.access.setNameRules(rules)
  }

  closeByKey(keyId: string, reason: CloseReason): void {
    for (const client of [...this.#clients.keys()]) if (client.key.id === keyId) this.close(client, reason)
  }

  closeByWorkspace(workspace: string, reason: CloseReason): void {
    for (const client of [...this.clientsInWorkspace(workspace)]) this.close(client, reason)
  }

  clientsInWorkspace(workspace: string): Iterable<TunnelClient> {
    return this.#clients.keys().filter(({ key }) => key.workspace === workspace)
  }

  /**
   * Rejects new tunnels from now on, and asks all clients to connect elsewhere. Until they have, requests are
   * served.
   */
  goAway(): void {
    if (this.#isStopping) return
    this.#isStopping = true
    for (const client of this.#clients.keys()) client.goAway()
  }

  /** Tells other edges that the tunnels are gone. */
  withdraw(): void {
    this.#isWithdrawn = true
    for (const tunnel of this.#tunnels.values()) this.#options.onChanged(tunnel)
  }

  /**
   * Other edges count the tunnels from the next minute, while requests may still be in progress here. Call it
   * when the names are released.
   */
  release(): void {
    this.#isReleased = true
    for (const count of this.#counts.values()) count.set({ counts: false })
  }

  closeAll(): void {
    for (const client of [...this.#clients.keys()]) this.close(client, 'stopped')
  }

  /** The distinct keys of all clients. */
  keys(): ClientKey[] {
    return [...new Map([...this.#clients.keys()].map(({ key }) => [key.id, key])).values()]
  }

  #remove(client: TunnelClient, reason: CloseReason): void {
    const tunnel = this.#clients.get(client)
    if (!tunnel) return
    const { workspace, load } = tunnel
    const { factory, onClosed, onChanged } = this.#options
    this.#clients.delete(client)
    this.#byId.delete(client.id)
    tunnel.clients.delete(client)
    load.clients -= 1
    if (tunnel.clients.size === 0) {
      this.#tunnels.delete(tunnel.address.host)
      this.#byName.delete(nameKey(workspace, tunnel.address.name))
      tunnel.address.listener?.close()
      factory.release(tunnel)
      this.#counts.get(tunnel)?.close()
      this.#counts.delete(tunnel)
    }
    onClosed(tunnel, client, reason)
    onChanged(tunnel)
  }
}

export const clientLimitMessage = () =>
  `The workspace is at its limit of ${CLIENTS_PER_WORKSPACE_MAX} tunnel clients at this edge.`

type ClientSecrets = Pick<TunnelRequest, 'resume' | 'session'>

/** Only hashes of the clients' secrets leave the edge. */
export const secretHash = hashSecret

/** A client without a session is identified by its connection. */
const sessionHash = ({ session, resume }: ClientSecrets): string | undefined => {
  const secret = session ?? resume
  return secret === undefined ? undefined : secretHash(secret)
}

const nameKey = (workspace: string, name: string) => `${name}.${workspace}`

const clientWith = ({ clients }: Tunnel, resume: string | undefined) =>
  resume === undefined ? undefined : [...clients].find((client) => client.resume === resume)
