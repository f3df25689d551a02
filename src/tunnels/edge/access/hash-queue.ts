// Runs password hashes one at a time, because each takes a thread and 16 MiB. Workspaces take turns, and so
// do the tunnels of a workspace: one with many hashes delays each of the others by one hash at most, and a
// workspace occupies a quarter of the queue at most.

const WAITING_PER_TUNNEL_MAX = 20
const WAITING_PER_WORKSPACE_MAX = 25
const WAITING_MAX = 100

/** The tunnel that a hash is for. */
export interface TunnelPlace {
  readonly workspace: string
  readonly host: string
}

interface Waiting extends TunnelPlace {
  start(): void
}

/** Why a hash is not accepted: the queue is full, or the tunnel or its workspace has too many in it. */
type Refusal = 'full' | 'limited'

export class HashQueue {
  /** In the order of their turns. */
  #waiting: Waiting[] = []
  #isRunning = false

  run<T>({ workspace, host }: TunnelPlace, hash: () => Promise<T>): Promise<T> | Refusal {
    const ofWorkspace = this.#waiting.filter((waiting) => waiting.workspace === workspace)
    const ofTunnel = ofWorkspace.filter((waiting) => waiting.host === host)
    if (ofWorkspace.length >= WAITING_PER_WORKSPACE_MAX || ofTunnel.length >= WAITING_PER_TUNNEL_MAX)
      return 'limited'
    if (this.#waiting.length >= WAITING_MAX) return 'full'
    const { promise: turn, resolve: start } = Promise.withResolvers<void>()
    this.#waiting.push({ workspace, host, start })
    this.#startNext()
    return turn.then(hash).finally(() => {
      this.#isRunning = false
      this.#startNext()
    })
  }

  #startNext(): void {
    if (this.#isRunning) return
    const next = this.#waiting.shift()
    if (!next) return
    this.#isRunning = true
    this.#moveBack((waiting) => waiting.workspace === next.workspace)
    this.#moveBack((waiting) => waiting.host === next.host)
    next.start()
  }

  /** Behind all others. */
  #moveBack(isOfGroup: (waiting: Waiting) => boolean): void {
    const { before = [], after = [] } = Object.groupBy(this.#waiting, (waiting) =>
      isOfGroup(waiting) ? 'after' : 'before',
    )
    this.#waiting = [...before, ...after]
  }
}
