// Limits MCP requests in progress on this node, for each key, each workspace and in total: each keeps its
// whole response in memory until the client has read it.
const PER_KEY_MAX = 4
const PER_WORKSPACE_MAX = 8
const PER_NODE_MAX = 32

interface Caller {
  keyId: string
  workspaceId: string
}

export class McpSlots {
  readonly #counts = new Map<string, number>()

  /** Returns a function that releases the slot, or the reason why there is none. */
  take({ keyId, workspaceId }: Caller): { release: () => void } | { error: string } {
    const limits = [
      { name: `key ${keyId}`, max: PER_KEY_MAX, subject: 'This API key' },
      { name: `workspace ${workspaceId}`, max: PER_WORKSPACE_MAX, subject: 'This workspace' },
      { name: 'node', max: PER_NODE_MAX, subject: 'This node' },
    ]
    const full = limits.find(({ name, max }) => (this.#counts.get(name) ?? 0) >= max)
    if (full)
      return {
        error: `${full.subject} has ${full.max} requests in progress. Try again when one has completed.`,
      }
    for (const { name } of limits) this.#add(name, 1)
    return {
      release: () => {
        for (const { name } of limits) this.#add(name, -1)
      },
    }
  }

  #add(name: string, change: 1 | -1): void {
    const count = (this.#counts.get(name) ?? 0) + change
    if (count > 0) this.#counts.set(name, count)
    else this.#counts.delete(name)
  }
}
