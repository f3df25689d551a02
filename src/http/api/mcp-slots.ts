// MCP requests in progress at this node, bounded for each key, each workspace and in total: each holds its whole response
// in memory until the client has read it.
const PER_KEY_MAX = 4
const PER_WORKSPACE_MAX = 8
const PER_NODE_MAX = 32

interface Caller {
  keyId: string
  workspaceId: string
}

export class McpSlots {
  readonly #taken = new Map<string, number>()

  /** Returns what frees the slot, or why there is none. */
  take({ keyId, workspaceId }: Caller): { release: () => void } | { refusal: string } {
    const limits = [
      { name: `key ${keyId}`, max: PER_KEY_MAX, who: 'This API key' },
      { name: `workspace ${workspaceId}`, max: PER_WORKSPACE_MAX, who: 'This workspace' },
      { name: 'node', max: PER_NODE_MAX, who: 'This node' },
    ]
    const full = limits.find(({ name, max }) => (this.#taken.get(name) ?? 0) >= max)
    if (full)
      return { refusal: `${full.who} has ${full.max} requests in progress. Try again when one has ended.` }
    for (const { name } of limits) this.#add(name, 1)
    return {
      release: () => {
        for (const { name } of limits) this.#add(name, -1)
      },
    }
  }

  #add(name: string, change: 1 | -1): void {
    const count = (this.#taken.get(name) ?? 0) + change
    if (count > 0) this.#taken.set(name, count)
    else this.#taken.delete(name)
  }
}
