// Runs password hashes one at a time, because each takes a thread and 16 MiB. Workspaces take turns, and so
// do the tunnels of a workspace: however many hashes one has in the queue, the next hash of another waits for
// at most two of them, the running one and one more. If the queue is full, the workspace with the most hashes
// in it loses its latest one.
import { SharedSlots } from '../../lib/shared-slots.ts'

const WAITING_PER_TUNNEL_MAX = 20
const WAITING_PER_WORKSPACE_MAX = 25
const WAITING_MAX = 100

/** The tunnel that a hash is for. */
export interface TunnelRef {
  readonly workspace: string
  readonly host: string
}

interface QueuedHash extends TunnelRef {
  start(): void
  reject(error: HashDisplaced): void
}

/** The hash made room for one of another workspace, and did not run. */
export class HashDisplaced extends Error {
  override name = 'HashDisplaced'
}

/** Why a hash is not queued: the queue is full, or the tunnel or its workspace has too many in it. */
type NotQueued = 'full' | 'limited'

export class HashQueue {
  /** Waiting hashes in the order of their turns. */
  #queue: QueuedHash[] = []
  readonly #byWorkspace = new SharedSlots<QueuedHash>()
  #isRunning = false

  /**
   * Returns the reason if the hash is not queued. The promise rejects with `HashDisplaced` if another
   * workspace displaces the hash while it waits.
   */
  run<T>({ workspace, host }: TunnelRef, hash: () => Promise<T>): Promise<T> | NotQueued {
    const sameTunnel = this.#queue.filter((waiting) => waiting.host === host)
    if (
      sameTunnel.length >= WAITING_PER_TUNNEL_MAX ||
      this.#byWorkspace.count(workspace) >= WAITING_PER_WORKSPACE_MAX
    )
      return 'limited'
    if (this.#queue.length >= WAITING_MAX && !this.#displace(workspace)) return 'full'
    const { promise: turn, resolve: start, reject } = Promise.withResolvers<void>()
    const waiting = { workspace, host, start, reject }
    this.#queue.push(waiting)
    this.#byWorkspace.add(workspace, waiting)
    this.#startNext()
    return turn.then(async () => {
      try {
        return await hash()
      } finally {
        this.#isRunning = false
        this.#startNext()
      }
    })
  }

  /** False if no other workspace has at least two hashes more in the queue. */
  #displace(workspace: string): boolean {
    const displaced = this.#byWorkspace.displace(workspace, 'newest')
    if (!displaced) return false
    this.#queue = this.#queue.filter((waiting) => waiting !== displaced)
    displaced.reject(new HashDisplaced('The hash was displaced by one of another workspace.'))
    return true
  }

  #startNext(): void {
    if (this.#isRunning) return
    const next = this.#queue.shift()
    if (!next) return
    this.#isRunning = true
    this.#byWorkspace.delete(next.workspace, next)
    this.#moveBack((waiting) => waiting.workspace === next.workspace)
    this.#moveBack((waiting) => waiting.host === next.host)
    next.start()
  }

  /** Moves a group behind all other hashes. */
  #moveBack(isInGroup: (waiting: QueuedHash) => boolean): void {
    const { before = [], after = [] } = Object.groupBy(this.#queue, (waiting) =>
      isInGroup(waiting) ? 'after' : 'before',
    )
    this.#queue = [...before, ...after]
  }
}
