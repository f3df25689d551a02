// The names that the workers of an edge have open, in the primary: decides which clients may have a name, as
// the registry of a single process does, and tells each worker where its siblings have clients.
import type { ClaimedTunnel, ClaimResult } from '../../edge-sdk/index.ts'
import { CLIENTS_PER_WORKSPACE_MAX, clientLimitMessage } from '../registry.ts'
import { nameTaken } from '../rejections.ts'

interface OpenClient {
  readonly tunnel: ClaimedTunnel
  readonly worker: string
  /** Its connection is stopping, or its worker is. */
  isDraining: boolean
}

type Rejected = ClaimResult & { granted: false }

export class OpenNames {
  readonly #clients = new Map<string, OpenClient>()
  /** Clients by host, then by id. */
  readonly #byHost = new Map<string, Map<string, OpenClient>>()
  readonly #byWorkspace = new Map<string, number>()
  /** A worker has its first client of a host, or no client any more. */
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

  /** A tunnel of the host, whichever client has it. */
  atHost(host: string): ClaimedTunnel | undefined {
    return this.#byHost.get(host)?.values().next().value?.tunnel
  }

  *locations(): Iterable<[host: string, worker: string]> {
    for (const [host, clients] of this.#byHost)
      for (const worker of new Set(clients.values().map((client) => client.worker))) yield [host, worker]
  }

  /** One tunnel per name, however many clients and workers have it. */
  *tunnels(): Iterable<ClaimedTunnel> {
    for (const clients of this.#byHost.values())
      for (const { tunnel } of clients.values().take(1)) yield tunnel
  }

  /** Clients of the same name. */
  others(tunnel: ClaimedTunnel): OpenClient[] {
    const clients = this.#byHost.get(findHostName(tunnel))?.values() ?? []
    return [...clients].filter((client) => client.tunnel.id !== tunnel.id)
  }

  /** Why a client may not have the name; undefined if it has it now. */
  add(tunnel: ClaimedTunnel, worker: string): Rejected | undefined {
    const rejection = this.#reject(tunnel)
    if (!rejection) this.addOpened(tunnel, worker)
    return rejection
  }

  /** A client whose worker has decided alone. */
  addOpened(tunnel: ClaimedTunnel, worker: string): void {
    const client = { tunnel, worker, isDraining: false }
    const host = findHostName(tunnel)
    const isNew = !this.#hasClient(host, worker)
    this.remove(tunnel.id)
    this.#clients.set(tunnel.id, client)
    const clients = this.#byHost.get(host) ?? new Map<string, OpenClient>()
    this.#byHost.set(host, clients.set(tunnel.id, client))
    this.#count(tunnel.workspace, 1)
    if (isNew) this.#onLocation(host, worker, true)
  }

  remove(id: string): OpenClient | undefined {
    const client = this.#clients.get(id)
    if (!client) return undefined
    const { tunnel, worker } = client
    const host = findHostName(tunnel)
    this.#clients.delete(id)
    const clients = this.#byHost.get(host)
    clients?.delete(id)
    if (clients?.size === 0) this.#byHost.delete(host)
    this.#count(tunnel.workspace, -1)
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

  #count(workspace: string, change: number): void {
    const count = (this.#byWorkspace.get(workspace) ?? 0) + change
    if (count === 0) this.#byWorkspace.delete(workspace)
    else this.#byWorkspace.set(workspace, count)
  }

  #reject(tunnel: ClaimedTunnel): Rejected | undefined {
    const { workspace, type, pool, session, resume } = tunnel
    const others = this.others(tunnel)
    const replaced = resume !== undefined && others.some((other) => other.tunnel.resume === resume)
    if (!replaced && (this.#byWorkspace.get(workspace) ?? 0) >= CLIENTS_PER_WORKSPACE_MAX)
      return { granted: false, reason: 'limit_reached', message: clientLimitMessage() }
    const other = others.find((each) => each.tunnel.type !== type)
    const isOfSession = session !== undefined && others.some((each) => each.tunnel.session === session)
    const mayShare = pool || replaced || isOfSession || others.every(({ isDraining }) => isDraining)
    if (!other && mayShare) return undefined
    const { message } = nameTaken(findHostName(tunnel), other?.tunnel.type ?? type, type)
    return { granted: false, reason: 'name_taken', message }
  }
}

/** The host name of the tunnel. */
export const findHostName = ({ url }: Pick<ClaimedTunnel, 'url'>) => new URL(url).hostname
