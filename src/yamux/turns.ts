// Streams that wait for their turn to send, first in, first out.

/** A stream with something to send. */
export interface FrameSource {
  /** Set by the sender while the stream waits for its turn. */
  isQueued: boolean
  readonly unsentBytes: number
  /** Writes one frame. Returns whether it could write another one. */
  writeFrame(payloadMax: number): boolean
}

export class Turns {
  #sources: FrameSource[] = []
  #next = 0

  get isEmpty(): boolean {
    return this.#next === this.#sources.length
  }

  push(source: FrameSource): void {
    this.#sources.push(source)
  }

  take(): FrameSource {
    return this.#sources[this.#next++] as FrameSource
  }

  /** Forgets those that had their turn. */
  compact(): void {
    this.#sources.splice(0, this.#next)
    this.#next = 0
  }

  clear(): void {
    this.#sources = []
    this.#next = 0
  }
}
