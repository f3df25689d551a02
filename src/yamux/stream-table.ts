// The open streams of a session, and the stream ids that were used.
import { ProtocolError, RST, TYPE_WINDOW_UPDATE, UINT32_MAX } from './frame.ts'
import { PeerIds } from './peer-ids.ts'
import { type StreamOwner, YamuxStream } from './stream.ts'

/**
 * Streams that only we closed are reset beyond this number or after this time. Otherwise a peer that never
 * closes its side would make them accumulate.
 */
const HALF_OPEN_MAX = 1_024
const HALF_OPEN_MS = 30_000
const RESETS_PERIOD_MS = 1_000

export class StreamTable {
  readonly #owner: StreamOwner
  readonly #peerStreamsMax: number
  readonly #peerIds: PeerIds
  readonly #streams = new Map<number, YamuxStream>()
  /** Times of closing by stream id, oldest first. */
  #halfOpen: Map<number, number> | undefined
  #halfOpenTimer: NodeJS.Timeout | undefined
  #nextId: number
  #peerStreams = 0
  #resets = 0
  #resetsSince = 0

  constructor(owner: StreamOwner, role: 'client' | 'server', peerStreamsMax: number) {
    this.#owner = owner
    this.#peerStreamsMax = peerStreamsMax
    this.#peerIds = new PeerIds(role === 'server')
    this.#nextId = role === 'client' ? 1 : 2
  }

  get size(): number {
    return this.#streams.size
  }

  all(): Iterable<YamuxStream> {
    return this.#streams.values()
  }

  /** Undefined if all ids are used. */
  open(): YamuxStream | undefined {
    if (this.#nextId > UINT32_MAX) return undefined
    const stream = new YamuxStream(this.#owner, this.#nextId, true)
    this.#nextId += 2
    this.#streams.set(stream.id, stream)
    return stream
  }

  /** Accepts a stream of the peer; undefined if the limit is reached and the stream was reset. */
  accept(id: number): YamuxStream | undefined {
    this.#peerIds.use(id)
    if (this.#peerStreams + this.#recentResets() >= this.#peerStreamsMax) return this.#sendReset(id)
    const stream = new YamuxStream(this.#owner, id, false)
    this.#peerStreams += 1
    this.#streams.set(id, stream)
    return stream
  }

  /** Undefined if we closed the stream: the peer may not know that yet. */
  find(id: number): YamuxStream | undefined {
    const stream = this.#streams.get(id)
    if (stream) return stream
    const isUsed = this.#peerIds.isPeers(id) ? this.#peerIds.hasUsed(id) : id < this.#nextId
    if (!isUsed) throw new ProtocolError(`frame for stream ${id}, which was never opened`)
    return undefined
  }

  /** Called when the peer reset a stream. */
  reset(stream: YamuxStream, error: Error): void {
    if (this.#peerIds.isPeers(stream.id)) this.#resets = this.#recentResets() + 1
    stream.onReset(error)
  }

  /** Called for data on a stream that we closed. */
  onLateData(id: number): void {
    if (this.#halfOpen?.delete(id)) this.#sendReset(id)
  }

  onLateClose(id: number): void {
    this.#halfOpen?.delete(id)
  }

  release(stream: YamuxStream, isHalfOpen: boolean): void {
    this.#streams.delete(stream.id)
    if (this.#peerIds.isPeers(stream.id)) this.#peerStreams -= 1
    if (!isHalfOpen) return
    this.#halfOpen ??= new Map()
    this.#halfOpen.set(stream.id, performance.now())
    if (this.#halfOpen.size > HALF_OPEN_MAX) this.#resetHalfOpen(Number.NEGATIVE_INFINITY)
    this.#halfOpenTimer ??= setTimeout(() => this.#onHalfOpenTimeout(), HALF_OPEN_MS).unref()
  }

  #onHalfOpenTimeout(): void {
    this.#halfOpenTimer = undefined
    this.#resetHalfOpen(performance.now() - HALF_OPEN_MS)
    if (this.#halfOpen?.size)
      this.#halfOpenTimer = setTimeout(() => this.#onHalfOpenTimeout(), HALF_OPEN_MS).unref()
  }

  /** Resets half-open streams that were closed before a time, and all beyond the limit. */
  #resetHalfOpen(before: number): void {
    for (const [id, closedAt] of this.#halfOpen ?? []) {
      if (closedAt > before && (this.#halfOpen?.size ?? 0) <= HALF_OPEN_MAX) return
      this.#halfOpen?.delete(id)
      this.#sendReset(id)
    }
  }

  #sendReset(id: number): undefined {
    this.#owner.sender.control(TYPE_WINDOW_UPDATE, RST, id, 0)
  }

  /**
   * Streams that the peer reset within about a second count as open. Otherwise it could cause unlimited work
   * by opening and resetting streams.
   */
  #recentResets(): number {
    if (this.#resets === 0) return 0
    const now = performance.now()
    if (now - this.#resetsSince > RESETS_PERIOD_MS) {
      this.#resetsSince = now
      this.#resets = 0
    }
    return this.#resets
  }
}
