// What the primary of an edge and its workers tell each other, over the channel between the processes. Each
// direction is in order.
import {
  type ClaimedTunnel,
  ControlPlaneError,
  type SyncResult,
  type TunnelUsage,
  type UsageQuota,
  type VerifierOptions,
} from '../../edge-sdk/index.ts'

/** Notices of a worker, with their arguments. */
export interface WorkerNotices {
  /** The worker serves its siblings at a socket, and asks for the state. */
  attached: [socketPath: string]
  opened: [tunnel: ClaimedTunnel, key: string]
  /** The client is stopping: another one may open the tunnel. */
  draining: [id: string]
  closed: [id: string]
  /** The worker is stopping: others may open all of its tunnels. */
  released: []
  usage: [usage: WorkerUsage]
  /** The change with this number is applied. */
  applied: [sequence: number]
}

/** What a worker has counted since its last notice. */
export interface WorkerUsage {
  readonly transfers: readonly (readonly [
    workspace: string,
    requests: number,
    bytesIn: number,
    bytesOut: number,
  ])[]
  readonly rejected: readonly [workspace: string, count: number][]
  /** Totals of clients, by id. */
  readonly totals: readonly [id: string, usage: TunnelUsage][]
}

/** Notices of the primary. */
export interface PrimaryNotices {
  /** Sent once, as the first notice. */
  state: [state: SharedState]
  /** A sibling has started, or with null has exited. */
  sibling: [id: string, socketPath: string | null]
  /** A sibling may have a client of the host, or has none any more. */
  location: [host: string, id: string, isOpen: boolean]
  /** A change after which tunnels are closed. The worker says when that is done. */
  apply: [sequence: number, change: KeyChange]
  quota: [workspace: string, quota: UsageQuota]
  close: [tunnel: SyncResult['close'][number]]
  /** The client has a connection at another worker. */
  moved: [id: string]
  rules: [name: SyncResult['names'][number]]
  /** Whether revocations are received; repeated every half second. */
  upToDate: [isUpToDate: boolean]
  /** An event of the control plane's stream. */
  peers: [data: string]
  locations: [data: string]
}

/** A callback of the verifier, with its arguments. */
export type KeyChange = {
  [N in 'onRevoked' | 'onArchived' | 'onReset']: readonly [
    name: N,
    ...args: Parameters<Required<VerifierOptions>[N]>,
  ]
}['onRevoked' | 'onArchived' | 'onReset']

interface SharedState {
  readonly siblings: readonly [id: string, socketPath: string][]
  readonly locations: readonly [host: string, id: string][]
  readonly quotas: readonly [workspace: string, quota: UsageQuota][]
}

/** Functions of the primary that workers call. */
export interface PrimaryCalls {
  verify(key: string): Promise<unknown>
  findHost(host: string): Promise<unknown>
  claim(tunnel: ClaimedTunnel, key: string): Promise<unknown>
  askTls(domain: string): Promise<unknown>
  /** The path at which siblings connect to the worker. */
  socketPath(): Promise<unknown>
}

/** The result of a call, or the error of the control plane. */
export type CallResult =
  | { readonly value: unknown }
  | {
      readonly error: string
      readonly status?: number | undefined
      readonly retryAfterS?: number | undefined
    }

export async function toCallResult(call: () => Promise<unknown>): Promise<CallResult> {
  try {
    return { value: await call() }
  } catch (error) {
    const { message } = error as Error
    const { status, retryAfterS } = error instanceof ControlPlaneError ? error : {}
    return { error: message, status, retryAfterS }
  }
}

export function fromCallResult<T>(result: CallResult): T {
  if ('value' in result) return result.value as T
  throw new ControlPlaneError(result.error, result.status, undefined, result.retryAfterS)
}
