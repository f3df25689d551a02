// The interface of a connection that a session runs on.

export interface Connection {
  readonly writable: boolean
  /** `isOnlyUser`: nobody else uses the memory of what was received. */
  on(event: 'data', listener: (received: Buffer, isOnlyUser?: boolean) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'end' | 'close', listener: () => void): unknown
  /** Called once the session has attached its listeners. */
  resume(): unknown
  /** Sends the chunks in one write. Calls back asynchronously when they are sent or sending failed. */
  send(chunks: readonly Buffer[], done: SendCallback): void
  /** Sends what was passed to `send`, and closes the connection. */
  end(): unknown
  destroy(): unknown
}

export type SendCallback = (error?: Error | null) => void
