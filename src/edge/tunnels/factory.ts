// Creates tunnels with what they share: the load of their workspace, the verification of passwords, and the
// counters of traffic.
import type { SharedBufferBudget } from '../../tunnel-protocol/buffers/buffer-budget.ts'
import { AccessControl, type AccessRules } from '../access/access-control.ts'
import { PasswordVerifier } from '../access/basic-auth.ts'
import { WorkspaceLoads } from '../admission/workspace-load.ts'
import { type TransferCounts, Tunnel, type TunnelAddress } from './tunnel.ts'
import type { UpstreamClient } from './upstream-client.ts'

export interface TunnelFactoryOptions extends TransferCounts {
  /** The memory of all workspaces. */
  readonly buffers: SharedBufferBudget
  /** The address is undefined if it is not known. */
  onWrongPassword(host: string, address: string | undefined): void
}

interface NewTunnel {
  readonly address: TunnelAddress
  readonly workspace: string
  /** Access rules of the clients, and of the name. */
  readonly clientRules: AccessRules
  readonly nameRules: AccessRules
}

export class TunnelFactory {
  readonly #counts: TransferCounts
  readonly #passwordVerifier: PasswordVerifier
  readonly #loads: WorkspaceLoads

  constructor(options: TunnelFactoryOptions) {
    this.#counts = options
    this.#passwordVerifier = new PasswordVerifier(options.onWrongPassword)
    this.#loads = new WorkspaceLoads(options.buffers)
  }

  create<Client extends UpstreamClient>(options: NewTunnel): Tunnel<Client> {
    const { address, workspace, clientRules, nameRules } = options
    const access = new AccessControl({ workspace, host: address.host }, this.#passwordVerifier, clientRules)
    access.setNameRules(nameRules)
    const load = this.#loads.acquire(workspace)
    return new Tunnel<Client>({ address, workspace, access, load, counts: this.#counts })
  }

  /** The tunnel is closed. */
  release({ workspace }: Pick<Tunnel, 'workspace'>): void {
    this.#loads.release(workspace)
  }

  /** How many tunnel clients of a workspace are connected. */
  clientCount(workspace: string): number {
    return this.#loads.find(workspace)?.clients ?? 0
  }
}
