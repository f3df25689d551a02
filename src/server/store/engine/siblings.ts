// What the workers of one primary have in common.

export interface Siblings {
  /** Sends a payload to the other workers. */
  broadcast(payload: string): void
  onBroadcast(listener: (payload: string) => void): void
}
