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

/** The loads of the workspaces that have tunnels. */
export class WorkspaceLoads {
  readonly #shared: SharedBufferBudget
  readonly #byWorkspace = new Map<string, { load: WorkspaceLoad; users: number }>()

  constructor(shared: SharedBufferBudget) {
    this.#shared = shared
  }

  find(workspace: string): WorkspaceLoad | undefined {
    return this.#byWorkspace.get(workspace)?.load
  }

  acquire(workspace: string): WorkspaceLoad {
    const entry = this.#byWorkspace.get(workspace) ?? this.#add(workspace)
    entry.users += 1
    return entry.load
  }

  release(workspace: string): void {
    const entry = this.#byWorkspace.get(workspace)
    if (!entry) return
    entry.users -= 1
    if (entry.users > 0) return
    this.#byWorkspace.delete(workspace)
    this.#shared.delete(entry.load.buffers)
  }

  #add(workspace: string): { load: WorkspaceLoad; users: number } {
    const entry = { load: new WorkspaceLoad(this.#shared), users: 0 }
    this.#byWorkspace.set(workspace, entry)
    this.#shared.add(entry.load.buffers)
    return entry
  }
}
