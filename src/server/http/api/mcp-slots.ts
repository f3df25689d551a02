// Limits MCP requests in progress on this node, for each key, each workspace and in total: each keeps its
// whole response in memory until the client has read it. If the node is full, the workspace with the most
// requests loses its oldest one.
import { KeyedCounter } from '../../../lib/collections/keyed-counter.ts'
import { LimitedSlots, type Slot } from '../../../lib/shared-slots.ts'

const PER_KEY_MAX = 4
const LIMITS = { perOwner: 8, total: 32 }
const SUBJECTS = { perOwner: 'This workspace', total: 'This node' }

export class McpSlots {
  readonly #byKey = new KeyedCounter()
  readonly #byWorkspace = new LimitedSlots(LIMITS)

  acquire({ keyId, workspaceId }: { keyId: string; workspaceId: string }): Slot | { error: string } {
    if (this.#byKey.get(keyId) >= PER_KEY_MAX) return full('This API key', PER_KEY_MAX)
    const slot = this.#byWorkspace.acquire(workspaceId)
    if (typeof slot === 'string') return full(SUBJECTS[slot], LIMITS[slot])
    this.#byKey.add(keyId, 1)
    const release = () => {
      this.#byKey.add(keyId, -1)
      slot.release()
    }
    return { ...slot, release }
  }
}

const full = (subject: string, max: number) => ({
  error: `${subject} has ${max} requests in progress. Try again when one has completed.`,
})
