// The change streams that edges keep open at this node, bounded for each edge and in total.

import { SharedSlots } from '../../../lib/shared-slots.ts'
import { Fault } from '../../domain/fault.ts'

/** An edge needs one stream. While it reconnects, streams on dead connections still count. */
const PER_EDGE_MAX = 8
/** Each change is written to every stream. */
const PER_NODE_MAX = 1_000
const RETRY_AFTER_S = 5

/** Why the stream of a valid edge is closed; sent to the edge. */
export class StreamReplaced extends Error {
  override name = 'StreamReplaced'
}

interface ChangeStreamsOptions {
  /** Aborted to end all streams. */
  closing: AbortSignal
  onReplaced: (edgeId: string) => void
}

interface Stream {
  readonly edgeId: string
  readonly controller: AbortController
}

export class ChangeStreams {
  readonly #open = new SharedSlots<Stream>()
  readonly #options: ChangeStreamsOptions

  constructor(options: ChangeStreamsOptions) {
    this.#options = options
    options.closing.addEventListener('abort', () => {
      for (const { controller } of this.#open.entries()) controller.abort()
    })
  }

  get count(): number {
    return this.#open.size
  }

  /** Throws if the node is full. The stream counts until it ends, or its consumer returns it. */
  open(
    edgeId: string,
    start: (closing: AbortSignal) => AsyncIterator<string>,
  ): AsyncIterableIterator<string> {
    this.#makeRoom(edgeId)
    const controller = new AbortController()
    const stream = { edgeId, controller }
    this.#open.add(edgeId, stream)
    if (this.#options.closing.aborted) controller.abort()
    const events = start(controller.signal)
    const release = () => this.#open.delete(edgeId, stream)
    return {
      [Symbol.asyncIterator]() {
        return this
      },
      async next() {
        const result = await events.next()
        if (result.done) release()
        return result
      },
      // Called if the client disconnects, even before the first event.
      async return() {
        release()
        controller.abort()
        await events.return?.()
        return { value: undefined, done: true }
      },
    }
  }

  /**
   * Closes the oldest stream of an edge that has too many: after a reconnect, that is the one that the edge
   * no longer reads. If the node is full, the edge with the most streams loses its oldest one.
   */
  #makeRoom(edgeId: string): void {
    const isFull = this.#open.size >= PER_NODE_MAX
    if (!isFull && this.#open.count(edgeId) < PER_EDGE_MAX) return
    const displaced = isFull ? this.#open.displace(edgeId, 'oldest') : undefined
    const closed = displaced ?? this.#open.oldest(edgeId)
    if (!closed)
      throw new Fault('unavailable', {
        message: `This node has ${PER_NODE_MAX} open change streams. Try again later, or at another node.`,
        retryAfterS: RETRY_AFTER_S,
      })
    this.#open.delete(closed.edgeId, closed)
    closed.controller.abort(
      new StreamReplaced(
        `This node keeps at most ${PER_EDGE_MAX} streams for an edge, and ${PER_NODE_MAX} in total; the ` +
          'oldest of this edge was closed for a newer one. Edges that share a credential need one each.',
      ),
    )
    this.#options.onReplaced(closed.edgeId)
  }
}
