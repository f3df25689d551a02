// How many connections the tunnels of one workspace may have at an edge, used or not.
const CONNECTIONS_OF_WORKSPACE_MAX = 2_000
/** Every tunnel may have as many as a tunnel client keeps ready, also where the workspace is at its maximum. */
const FIRST_CONNECTIONS = 4

export const QUOTA_MESSAGE =
  `The tunnels of the workspace have ${CONNECTIONS_OF_WORKSPACE_MAX} connections to this edge already. ` +
  'Try again when some are closed.'

export class ConnectionQuota {
  readonly #ofWorkspace = new Map<string, number>()

  /** Whether a tunnel that has so many connections may have another. */
  admits(workspace: string, ofTunnel: number): boolean {
    return ofTunnel < FIRST_CONNECTIONS || this.#count(workspace) < CONNECTIONS_OF_WORKSPACE_MAX
  }

  add(workspace: string): void {
    this.#ofWorkspace.set(workspace, this.#count(workspace) + 1)
  }

  remove(workspace: string): void {
    const left = this.#count(workspace) - 1
    if (left > 0) this.#ofWorkspace.set(workspace, left)
    else this.#ofWorkspace.delete(workspace)
  }

  #count(workspace: string): number {
    return this.#ofWorkspace.get(workspace) ?? 0
  }
}
