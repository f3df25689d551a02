// Messages between the workers of one primary.

export interface WorkerBus {
  /** Sends a payload to the other workers. */
  broadcast(payload: string): void
  onBroadcast(listener: (payload: string) => void): void
}
