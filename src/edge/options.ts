// What an edge is started with.
import type { Socket } from 'node:net'
import type {
  Meter,
  TunnelReporter,
  TunnelReporterOptions,
  Verifier,
  VerifierOptions,
} from '../edge-sdk/index.ts'
import type { ListenAddress } from '../lib/net/listen-error.ts'
import type { CertificateLimits } from './certificates/budget.ts'
import type { ClientAddressesOptions } from './ingress/client-address.ts'
import type { IngressConnectionsOptions } from './ingress/connections.ts'
import type { TcpTunnelsOptions } from './tcp/tunnels.ts'
import type { TunnelFactoryOptions } from './tunnels/factory.ts'
import type { RegistryOptions } from './tunnels/registry.ts'
import type { PrimaryConnection } from './workers/connection.ts'

export type VerifierCallbacks = Pick<
  Required<VerifierOptions>,
  'onRevoked' | 'onArchived' | 'onQuota' | 'onReset' | 'onTunnelsChanged'
>

type ReporterOptions = Pick<
  TunnelReporterOptions,
  'verifier' | 'onClose' | 'onAccessRules' | 'onOtherEdges' | 'onLeaseExpired' | 'onLeaseRenewed'
>

export interface EdgeOptions
  extends Pick<RegistryOptions, 'onOpened' | 'onClosed'>,
    Pick<TunnelFactoryOptions, 'onWrongPassword'>,
    Pick<TcpTunnelsOptions, 'localPorts' | 'onPortUnavailable'>,
    CertificateLimits,
    ClientAddressesOptions,
    Pick<IngressConnectionsOptions, 'onConnectionsLimited'> {
  readonly host: string
  readonly port: number
  /** Scheme and port of public URLs; if undefined, those of the listener. */
  readonly publicEndpoint: { scheme: 'http' | 'https'; port: number | undefined } | undefined
  /** The address on which TCP tunnels listen; `host` if it is empty. */
  readonly tcpHost: string
  /**
   * The edge closes tunnels on a revocation, and verifies all keys again when revocations may have been
   * missed.
   */
  startVerifier(callbacks: VerifierCallbacks): Verifier
  /** Where other edges of the cluster connect; undefined if this edge neither accepts nor forwards. */
  readonly peerListener?: ListenAddress | undefined
  /** Undefined without a control plane, and so is the reporter. */
  readonly meter: Meter | undefined
  readonly startReporter: ((options: ReporterOptions) => TunnelReporter) | undefined
  /** Set in one of several workers of an edge. */
  readonly worker?: WorkerOptions | undefined
}

export interface WorkerOptions {
  /** The sockets to listen on; empty if the cluster module passes connections. */
  readonly sockets: readonly Socket[]
  readonly primary: Pick<
    PrimaryConnection,
    'otherWorkers' | 'attach' | 'askTls' | 'onDrain' | 'onTunnelChanged'
  >
  /** Where other workers connect to this one. */
  readonly socketPath: string
}
