// Limits MCP requests in progress on this node, for each key, each workspace and in total: each keeps its
// whole response in memory until the client has read it. If the node is full, the workspace with the most
// requests loses its oldest one.
import { SharedSlots } from '../../../lib/shared-slots.ts'

const PER_KEY_MAX = 4
const PER_WORKSPACE_MAX = 8
const PER_NODE_MAX = 32

interface Caller {
  keyId: string
  workspaceId: string
}

interface Slot {
  readonly keyId: string
  displace(): void
}

export class McpSlots {
  /** By workspace. */
  readonly #slots = new SharedSlots<Slot>()

  /**
   * Returns a function that releases the slot, or the reason why there is none. `displace` is called if the
   * slot has to make room for another workspace.
   */
  take({ keyId, workspaceId }: Caller, displace: () => void): { release: () => void } | { error: string } {
    if (this.#slots.count(workspaceId) >= PER_WORKSPACE_MAX) return full('This workspace', PER_WORKSPACE_MAX)
    const ofKey = this.#slots.entries(workspaceId).filter((slot) => slot.keyId === keyId)
    if (ofKey.length >= PER_KEY_MAX) return full('This API key', PER_KEY_MAX)
    if (this.#slots.size >= PER_NODE_MAX) {
      const displaced = this.#slots.displace(workspaceId, 'oldest')
      if (!displaced) return full('This node', PER_NODE_MAX)
      displaced.displace()
    }
    const slot = { keyId, displace }
    this.#slots.add(workspaceId, slot)
    return { release: () => void this.#slots.delete(workspaceId, slot) }
  }
}

const full = (subject: string, max: number) => ({
  error: `${subject} has ${max} requests in progress. Try again when one has completed.`,
})
