// The clients of all workers of an edge, by name. The primary decides here which clients may have a name, as
// the registry does in an edge of one process, and learns which workers have clients of a host.
import type { ClaimedTunnel, ClaimResult } from '../../edge-sdk/index.ts'
import { differentRules, nameTaken } from '../admission/rejections.ts'
import type { ClientKey } from '../tunnels/client.ts'
import { CLIENTS_PER_WORKSPACE_MAX, clientLimitMessage } from '../tunnels/registry.ts'

interface OpenClient {
  readonly tunnel: ClaimedTunnel
  /** The raw API key. */
  readonly key: string
  /** The id of the worker that it is connected to. */
  readonly worker: string
  /** The client or its worker is stopping: another client may have the name. */
  isDraining: boolean
  /** A client that is connected to several workers counts once towards the limit of the workspace. */
  isCounted: boolean
}

type RejectedClaim = ClaimResult & { granted: false }

export class OpenNames {
  /** By the id of the client's tunnel. */
  readonly #clients = new Map<string, OpenClient>()
  /** Clients by host, then by id. */
  readonly #byHost = new Map<string, Map<string, OpenClient>>()
  readonly #clientsPerWorkspace = new Map<string, number>()
  /** Called when a worker gets its first client of a host, and when it has lost its last one. */
  readonly #onLocation: (host: string, worker: string, isOpen: boolean) => void

  constructor(onLocation: (host: string, worker: string, isOpen: boolean) => void) {
    this.#onLocation = onLocation
  }

  clients(): Iterable<OpenClient> {
    return this.#clients.values()
  }

  client(id: string): OpenClient | undefined {
    return this.#clients.get(id)
  }

  /** The tunnel of one of the host's clients. */
  atHost(host: string): ClaimedTunnel | undefined {
    return this.#byHost.get(host)?.values().next().value?.tunnel
  }

  /** Which workers have clients of a host. */
  *locations(): Iterable<[host: string, worker: string]> {
    for (const [host, clients] of this.#byHost)
      for (const worker of new Set(clients.values().map((client) => client.worker))) yield [host, worker]
  }

  /** One tunnel for each name, also if it has several clients. */
  *tunnels(): Iterable<ClaimedTunnel> {
    for (const clients of this.#byHost.values())
      for (const { tunnel } of clients.values().take(1)) yield tunnel
  }

  /** The distinct keys of all clients. */
  keys(): ClientKey[] {
    const keys = new Map<string, ClientKey>()
    for (const { tunnel, key } of this.#clients.values())
      keys.set(tunnel.keyId, { secret: key, id: tunnel.keyId, workspace: tunnel.workspace })
    return [...keys.values()]
  }

  /** The other clients of the tunnel's name. */
  others(tunnel: ClaimedTunnel): OpenClient[] {
    const clients = this.#byHost.get(parseHostName(tunnel))?.values() ?? []
    return [...clients].filter((client) => client.tunnel.id !== tunnel.id)
  }

  /** Adds a client that may have its name. Otherwise returns the reason. */
  claim(tunnel: ClaimedTunnel, worker: string, key: string): RejectedClaim | undefined {
    const rejection = this.#findRejection(tunnel, worker)
    if (!rejection) this.add(tunnel, worker, key)
    return rejection
  }

  /** Adds a client whose tunnel is open. Replaces its claim, which did not know the port of a TCP tunnel. */
  add(tunnel: ClaimedTunnel, worker: string, key: string): void {
    const claimed = this.#clients.get(tunnel.id)
    const isCounted = claimed?.isCounted ?? !this.#isOnlyAtOtherWorkers(tunnel, worker)
    const client = { tunnel, worker, key, isDraining: false, isCounted }
    const host = parseHostName(tunnel)
    const isNew = !this.#hasClient(host, worker)
    if (!claimed && isCounted) this.#addToCount(tunnel.workspace, 1)
    this.#clients.set(tunnel.id, client)
    const clients = this.#byHost.get(host) ?? new Map<string, OpenClient>()
    this.#byHost.set(host, clients.set(tunnel.id, client))
    if (isNew) this.#onLocation(host, worker, true)
  }

  remove(id: string): OpenClient | undefined {
    const client = this.#clients.get(id)
    if (!client) return undefined
    const { tunnel, worker } = client
    const host = parseHostName(tunnel)
    this.#clients.delete(id)
    const clients = this.#byHost.get(host)
    clients?.delete(id)
    if (clients?.size === 0) this.#byHost.delete(host)
    if (client.isCounted) {
      const next = this.#ofSession(tunnel).find(({ isCounted }) => !isCounted)
      if (next) next.isCounted = true
      else this.#addToCount(tunnel.workspace, -1)
    }
    if (!this.#hasClient(host, worker)) this.#onLocation(host, worker, false)
    return client
  }

  #hasClient(host: string, worker: string): boolean {
    return (
      this.#byHost
        .get(host)
        ?.values()
        .some((client) => client.worker === worker) ?? false
    )
  }

  /** Other connections of the same client. */
  #ofSession(tunnel: ClaimedTunnel): OpenClient[] {
    const { session } = tunnel
    return session === undefined
      ? []
      : this.others(tunnel).filter((other) => other.tunnel.session === session)
  }

  /** Whether the same client is connected to other workers, and not to this one. */
  #isOnlyAtOtherWorkers(tunnel: ClaimedTunnel, worker: string): boolean {
    const connections = this.#ofSession(tunnel)
    return connections.length > 0 && connections.every((other) => other.worker !== worker)
  }

  #addToCount(workspace: string, change: number): void {
    const count = (this.#clientsPerWorkspace.get(workspace) ?? 0) + change
    if (count === 0) this.#clientsPerWorkspace.delete(workspace)
    else this.#clientsPerWorkspace.set(workspace, count)
  }

  #findRejection(tunnel: ClaimedTunnel, worker: string): RejectedClaim | undefined {
    const { workspace, type, pool, resume } = tunnel
    const others = this.others(tunnel)
    const isReconnect = resume !== undefined && others.some((other) => other.tunnel.resume === resume)
    const isCounted = !isReconnect && !this.#isOnlyAtOtherWorkers(tunnel, worker)
    if (isCounted && (this.#clientsPerWorkspace.get(workspace) ?? 0) >= CLIENTS_PER_WORKSPACE_MAX)
      return { granted: false, reason: 'limit_reached', message: clientLimitMessage() }
    const otherType = others.find((other) => other.tunnel.type !== type)?.tunnel.type
    const isOfSession = this.#ofSession(tunnel).length > 0
    const mayShare = pool || isReconnect || isOfSession || others.every(({ isDraining }) => isDraining)
    const isTaken = otherType !== undefined || !mayShare
    if (!isTaken && hasSameRules(tunnel, others)) return undefined
    const host = parseHostName(tunnel)
    const { message } = isTaken ? nameTaken(host, otherType ?? type, type) : differentRules(host)
    return { granted: false, reason: 'name_taken', message }
  }
}

/**
 * All clients of a pool need the same rules. Passwords are compared only among those of one worker: the
 * primary does not get them.
 */
function hasSameRules(tunnel: ClaimedTunnel, others: readonly OpenClient[]): boolean {
  const describe = ({ access }: ClaimedTunnel) =>
    JSON.stringify([access?.basicAuth ?? false, access?.allowIp.toSorted() ?? []])
  return others.every(
    (other) =>
      other.isDraining ||
      (tunnel.resume !== undefined && other.tunnel.resume === tunnel.resume) ||
      describe(other.tunnel) === describe(tunnel),
  )
}

export const parseHostName = ({ url }: Pick<ClaimedTunnel, 'url'>) => new URL(url).hostname
