// What ingress needs of a tunnel client that carries requests, wherever it is connected.
import type { Transfer } from '../../edge-sdk/index.ts'
import type { TunnelEvent } from '../../tunnel-protocol/protocol.ts'
import type { YamuxStream } from '../../yamux/index.ts'
import type { ConnectionPool } from '../local-server/connection-pool.ts'
import type { SilenceDetector } from './silence-detector.ts'

export interface UpstreamClient {
  readonly workspace: string
  /** SHA-256 of its API key. */
  readonly keyHash: string
  /** Origin of the local server. */
  readonly target: string | undefined
  /** Takes precedence over the Host header in the rules of the name. */
  readonly hostHeader: string | undefined
  readonly totals: Required<Transfer>
  /** It gets no new requests. */
  readonly isDraining: boolean
  readonly isClosed: boolean
  /** It does not respond, so requests go to others if there are any. */
  readonly isSilent: boolean
  readonly silence: SilenceDetector
  /** Requests and connections in progress. */
  readonly active: number
  /** Connections to the local server. */
  readonly connections: ConnectionPool
  /** A request or connection begins. */
  start(): void
  finish(): void
  send(event: TunnelEvent): void
  /** Calls back when the client is stopping. Returns a function that removes the listener. */
  onDraining(listener: () => void): () => void
  /** Opens a stream, which the client connects to its local server. Throws if the session is closed. */
  openStream(): YamuxStream
}
