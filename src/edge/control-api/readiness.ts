// Whether a load balancer should send requests to this edge, and if not, why.

interface Unready {
  readonly error: 'draining' | 'cut_off' | 'starting' | 'overloaded'
  readonly message: string
}

interface ReadinessOptions {
  /** False while the control plane's changes do not arrive, and without its lease for traffic. */
  isConnected(): boolean
  /** False until it is known which tunnels other edges have. */
  isClusterKnown(): boolean
  /**
   * Whether more requests would be at the cost of others: idle connections are closed, or slow requests are
   * evicted. Delays of the event loop do not count: a check that is answered too late has said so.
   */
  isOverloaded(): boolean
}

const DRAINING: Unready = {
  error: 'draining',
  message: 'The edge is stopping. Send new requests to another one.',
}
const CUT_OFF: Unready = {
  error: 'cut_off',
  message:
    'The edge does not reach the control plane. Send new requests to another one; the log has the cause.',
}
const STARTING: Unready = {
  error: 'starting',
  message: 'The edge has just started, and does not know the tunnels of other edges yet.',
}
const OVERLOADED: Unready = {
  error: 'overloaded',
  message: 'Nearly all connections or buffers of the edge are in use. Send new requests to another one.',
}

export class Readiness {
  readonly #options: ReadinessOptions
  #isDraining = false

  constructor(options: ReadinessOptions) {
    this.#options = options
  }

  drain(): void {
    this.#isDraining = true
  }

  /** Undefined if the edge is ready. */
  find(): Unready | undefined {
    if (this.#isDraining) return DRAINING
    if (!this.#options.isConnected()) return CUT_OFF
    if (!this.#options.isClusterKnown()) return STARTING
    return this.#options.isOverloaded() ? OVERLOADED : undefined
  }
}
