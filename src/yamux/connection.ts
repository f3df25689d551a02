// What a session needs of its connection. Sockets and other Duplex streams have it.

export interface Connection {
  readonly writable: boolean
  /** More would only fill the memory. `drain` follows. */
  readonly writableNeedDrain: boolean
  on(event: 'data', listener: (received: Buffer) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'drain' | 'end' | 'close', listener: () => void): unknown
  /** Called when the session listens. */
  resume(): unknown
  /** Chunks that are written between `cork` and `uncork` leave together. */
  cork(): void
  uncork(): void
  write(chunk: Buffer): unknown
  /** Sends what was written, and closes the connection. */
  end(): unknown
  destroy(): unknown
}
