// Limits how many connections the tunnels of one workspace may have at an edge, used or spare.
const CONNECTIONS_PER_WORKSPACE_MAX = 2_000
/**
 * Every tunnel may have as many connections as a tunnel client keeps spare, even if the workspace is at its
 * limit.
 */
const CONNECTIONS_PER_TUNNEL_MIN = 4

export const QUOTA_MESSAGE =
  `The workspace is at its limit of ${CONNECTIONS_PER_WORKSPACE_MAX} tunnel connections to this edge. ` +
  'Retry when some are closed.'

export class ConnectionQuota {
  readonly #counts = new Map<string, number>()

  /** Whether a tunnel with this many connections may have another one. */
  admits(workspace: string, tunnelConnections: number): boolean {
    return (
      tunnelConnections < CONNECTIONS_PER_TUNNEL_MIN || this.#count(workspace) < CONNECTIONS_PER_WORKSPACE_MAX
    )
  }

  add(workspace: string): void {
    this.#counts.set(workspace, this.#count(workspace) + 1)
  }

  remove(workspace: string): void {
    const left = this.#count(workspace) - 1
    if (left > 0) this.#counts.set(workspace, left)
    else this.#counts.delete(workspace)
  }

  #count(workspace: string): number {
    return this.#counts.get(workspace) ?? 0
  }
}
