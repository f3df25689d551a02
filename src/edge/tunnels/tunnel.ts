// An open tunnel: a host name, or a port, and the clients that serve it.
import type { Meter, Transfer } from '../../edge-sdk/index.ts'
import { ClientLimit } from '../../lib/net/client-limit.ts'
import type { Opened, TunnelType } from '../../tunnel-protocol/protocol.ts'
import type { AccessControl } from '../access/access-control.ts'
import type { WorkspaceLoad } from '../admission/workspace-load.ts'
import { ProgressCheck } from '../ingress/progress-check.ts'
import { RequestSet } from '../ingress/request-set.ts'
import type { TcpListener } from '../tcp/listeners.ts'
import type { TunnelClient } from './client.ts'
import type { UpstreamClient } from './upstream-client.ts'

/** Requests and connections in progress. */
const REQUESTS_MAX = 500
/** Below the capacity of the tunnel, so that one address cannot use all of it. */
const REQUESTS_PER_ADDRESS = { max: REQUESTS_MAX / 2, maxPer48: (REQUESTS_MAX * 3) / 4 }

export interface TunnelAddress extends Omit<Opened, 'access'> {
  /** Undefined for HTTP tunnels. */
  readonly listener?: TcpListener | undefined
}

/** The counters of traffic beside those of each client: of the workspace, and of the edge. */
export interface TransferCounts {
  readonly meter: Pick<Meter, 'transferred'> | undefined
  readonly transferred: Required<Transfer>
}

interface TunnelOptions {
  readonly address: TunnelAddress
  readonly workspace: string
  readonly access: AccessControl
  readonly load: WorkspaceLoad
  readonly counts: TransferCounts
}

/** `Client` is another type if the clients are connected to another edge. */
export class Tunnel<Client extends UpstreamClient = TunnelClient> {
  address: TunnelAddress
  readonly workspace: string
  readonly access: AccessControl
  readonly clients = new Set<Client>()
  readonly perAddress = new ClientLimit(REQUESTS_PER_ADDRESS)
  readonly requests = new RequestSet(REQUESTS_MAX, 'tunnelPosition')
  readonly progress = new ProgressCheck(this.requests)
  readonly load: WorkspaceLoad
  /** Known for a tunnel at another edge: until when it rejects requests, in milliseconds since 1970. */
  quotaReachedUntil: number | undefined
  readonly #counts: TransferCounts

  constructor({ address, workspace, access, load, counts }: TunnelOptions) {
    this.address = address
    this.workspace = workspace
    this.access = access
    this.load = load
    this.#counts = counts
  }

  get type(): TunnelType {
    return this.address.type
  }

  /** Whether a client can be picked. */
  get isAvailable(): boolean {
    for (const { isDraining } of this.clients) if (!isDraining) return true
    return false
  }

  /** Whether no client that can be picked responds. */
  get isSilent(): boolean {
    for (const { isDraining, isSilent } of this.clients) if (!isDraining && !isSilent) return false
    return true
  }

  /** Whether another client than this one can be picked. */
  hasOther(than: UpstreamClient | undefined): boolean {
    for (const client of this.clients) if (!client.isDraining && client !== than) return true
    return false
  }

  /**
   * The client with the fewest requests, in turn if several have as few; one that is silent, or `failed`,
   * only if there is no other.
   */
  pickClient(failed?: Client): Client | undefined {
    let picked: Client | undefined
    for (const client of this.clients)
      if (client !== failed && !client.isDraining && (!picked || isBetter(client, picked))) picked = client
    picked ??= failed && this.clients.has(failed) && !failed.isDraining ? failed : undefined
    if (picked && this.clients.size > 1) {
      this.clients.delete(picked)
      this.clients.add(picked)
    }
    return picked
  }

  /** The Host header for the local server of the client; undefined for the host of the tunnel. */
  hostHeader(client: Client): string | undefined {
    return client.hostHeader ?? this.access.nameRules.hostHeader
  }

  /** Counts usage of the client that carries it, of the workspace and of the edge. */
  count(client: Client, transfer: Transfer): void {
    const { meter, transferred } = this.#counts
    add(client.totals, transfer)
    add(transferred, transfer)
    meter?.transferred(this.workspace, transfer)
  }
}

const isBetter = (client: UpstreamClient, than: UpstreamClient) =>
  client.isSilent === than.isSilent ? client.active < than.active : than.isSilent

function add(totals: Required<Transfer>, transfer: Transfer): void {
  totals.requests += transfer.requests ?? 0
  totals.bytesIn += transfer.bytesIn ?? 0
  totals.bytesOut += transfer.bytesOut ?? 0
}
