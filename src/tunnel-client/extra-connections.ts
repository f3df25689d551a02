// Connections beyond the first one to an edge, which the edge has asked for: it has several workers, and the
// others forward many requests to the one with the tunnel's connection. The edge closes those that it no
// longer needs.
import type { EdgeConnection } from './edge-connection.ts'

/** Bounds what a misbehaving edge can make the client open. */
export const EXTRA_MAX = 16

export class ExtraConnections {
  readonly #connect: (edge: string) => Promise<EdgeConnection>
  /** Those that serve requests, and those that complete their streams. */
  readonly #connections = new Set<EdgeConnection>()
  #serving = 0
  #opening = 0

  constructor(connect: (edge: string) => Promise<EdgeConnection>) {
    this.#connect = connect
  }

  get isOpen(): boolean {
    return this.#serving > 0
  }

  has(connection: EdgeConnection): boolean {
    return this.#connections.has(connection)
  }

  /** A connection that fails is not opened again: without it the edge forwards, and may ask again. */
  async add(edge: string): Promise<void> {
    if (this.#connections.size + this.#opening >= EXTRA_MAX) return
    this.#opening += 1
    const connection = await this.#connect(edge).catch(() => undefined)
    this.#opening -= 1
    if (!connection) return
    this.#connections.add(connection)
    this.#serving += 1
    // A tunnel that is closed for good is closed at its first connection, too.
    await connection.lossReason.catch(() => undefined)
    this.#serving -= 1
    // The edge closes it when its requests are complete.
    await connection.closed
    this.#connections.delete(connection)
  }
}
