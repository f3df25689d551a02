// Limits how often a workspace opens tunnels: each opening is a transaction of the control plane and an entry
// in `RecentNames`.
import { BoundedMap } from '../bounded-map.ts'
import { RateLimit } from './rate-limit.ts'

const OPENINGS = { burst: 1_000, perSecond: 10 }
const WORKSPACES_MAX = 10_000

export class OpeningLimit {
  readonly #byWorkspace = new BoundedMap<string, RateLimit>(WORKSPACES_MAX)

  /** Counts an opening. False if the workspace has too many. */
  count(workspace: string): boolean {
    const limit = this.#byWorkspace.get(workspace) ?? new RateLimit(OPENINGS)
    this.#byWorkspace.set(workspace, limit)
    return limit.take(performance.now())
  }
}
