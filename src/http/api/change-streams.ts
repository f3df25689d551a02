// The change streams that edges keep open at this node, bounded for each edge and in total.
import { Fault } from '../../domain/fault.ts'

/** An edge needs one. While it reconnects, streams on dead connections still count. */
const PER_EDGE_MAX = 8
/** Each change is written to every stream. */
const PER_NODE_MAX = 1_000
const RETRY_AFTER_S = 5

/** Why the stream of a valid edge is closed; sent to the edge. */
export class StreamReplaced extends Error {
  override name = 'StreamReplaced'
}

export interface ChangeStreamsOptions {
  /** Aborted to end all streams. */
  closing: AbortSignal
  onReplaced: (edgeId: string) => void
}

export class ChangeStreams {
  /** Streams by edge, the oldest first. */
  readonly #open = new Map<string, Set<AbortController>>()
  readonly #options: ChangeStreamsOptions
  #count = 0

  constructor(options: ChangeStreamsOptions) {
    this.#options = options
    options.closing.addEventListener('abort', () => {
      for (const streams of this.#open.values()) for (const stream of streams) stream.abort()
    })
  }

  get count(): number {
    return this.#count
  }

  /** Throws if the node is full. The stream counts until it ends, or its consumer returns it. */
  open(
    edgeId: string,
    start: (closing: AbortSignal) => AsyncIterator<string>,
  ): AsyncIterableIterator<string> {
    this.#makeRoom(edgeId)
    const stream = new AbortController()
    this.#add(edgeId, stream)
    if (this.#options.closing.aborted) stream.abort()
    const events = start(stream.signal)
    const release = () => this.#remove(edgeId, stream)
    return {
      [Symbol.asyncIterator]() {
        return this
      },
      async next() {
        const result = await events.next()
        if (result.done) release()
        return result
      },
      // Also called if the client disconnects before the first event.
      async return() {
        release()
        stream.abort()
        await events.return?.()
        return { value: undefined, done: true }
      },
    }
  }

  /**
   * Of one edge the oldest stream is closed in favor of the new one: if the edge had to reconnect, the
   * oldest is the one that it no longer reads.
   */
  #makeRoom(edgeId: string): void {
    const [oldest] = this.#open.get(edgeId) ?? []
    const isFull = this.#count >= PER_NODE_MAX
    if (oldest && (isFull || this.#open.get(edgeId)?.size === PER_EDGE_MAX)) {
      this.#remove(edgeId, oldest)
      oldest.abort(
        new StreamReplaced(
          `This node keeps at most ${PER_EDGE_MAX} streams for an edge, and ${PER_NODE_MAX} in total; the ` +
            'oldest of this edge was closed for a newer one. Edges that share a credential need one each.',
        ),
      )
      this.#options.onReplaced(edgeId)
    } else if (isFull)
      throw new Fault('unavailable', {
        message: `This node has ${PER_NODE_MAX} open change streams. Try again later, or at another node.`,
        retryAfterS: RETRY_AFTER_S,
      })
  }

  #add(edgeId: string, stream: AbortController): void {
    const streams = this.#open.get(edgeId)
    if (streams) streams.add(stream)
    else this.#open.set(edgeId, new Set([stream]))
    this.#count++
  }

  #remove(edgeId: string, stream: AbortController): void {
    const streams = this.#open.get(edgeId)
    if (!streams?.delete(stream)) return
    this.#count--
    if (streams.size === 0) this.#open.delete(edgeId)
  }
}
