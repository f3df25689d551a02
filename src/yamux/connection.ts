// What a session needs of its connection.

export interface Connection {
  readonly writable: boolean
  on(event: 'data', listener: (received: Buffer) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'end' | 'close', listener: () => void): unknown
  /** Called when the session listens. */
  resume(): unknown
  /** Sends the chunks together. Calls back, later, when they are sent or cannot be. */
  send(chunks: readonly Buffer[], done: SendCallback): void
  /** Sends what was passed to `send`, and closes the connection. */
  end(): unknown
  destroy(): unknown
}

export type SendCallback = (error?: Error | null) => void
