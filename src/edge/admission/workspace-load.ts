// What the tunnels of one workspace use of an edge.
import { BufferBudget, type SharedBufferBudget } from '../../tunnel-protocol/buffers/buffer-budget.ts'
import { RequestSet } from '../ingress/request-set.ts'

const REQUESTS_MAX = 4_000
const BUFFERED_BYTES_MAX = 64 * 1024 * 1024
/** The limit of all workspaces together. */
export const EDGE_BUFFERED_BYTES_MAX = 256 * 1024 * 1024

export class WorkspaceLoad {
  readonly requests = new RequestSet(REQUESTS_MAX, 'workspacePosition')
  readonly buffers: BufferBudget
  /** Connected tunnel clients. */
  clients = 0

  constructor(shared: SharedBufferBudget) {
    this.buffers = new BufferBudget(BUFFERED_BYTES_MAX, shared)
  }
}
