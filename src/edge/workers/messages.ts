// The messages between the primary of an edge and its workers. They arrive in the order in which they were
// sent.
import {
  type ClaimedTunnel,
  ControlPlaneError,
  type SyncResult,
  type TunnelUsage,
  type UsageQuota,
  type VerifierOptions,
} from '../../edge-sdk/index.ts'
import type { Moment } from '../../lib/credentials/lease.ts'

/** Notices of a worker, with their arguments. */
export interface WorkerNotices {
  /** The worker accepts connections of other workers at this socket, and waits for the state. */
  attached: [socketPath: string]
  opened: [tunnel: ClaimedTunnel, key: string]
  /** The client is stopping: another one may have its name. */
  draining: [id: string]
  closed: [id: string]
  /** The worker is stopping: clients of other workers may have the names of its clients. */
  released: []
  usage: [usage: WorkerUsage]
  /** The worker has applied the change with this number. */
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
  /** Usage of clients since they were opened, by id. */
  readonly totals: readonly [id: string, usage: TunnelUsage][]
}

/** Workspaces whose quotas the primary and each worker keep. */
export const QUOTAS_MAX = 100_000

/** Notices of the primary. */
export interface PrimaryNotices {
  /** Sent once, as the first notice. */
  state: [state: SharedState]
  /** Another worker has started; or exited, if the path is null. */
  worker: [id: string, socketPath: string | null]
  /** Another worker has claimed the host for a client, or has no client of it any more. */
  workerLocation: [host: string, id: string, isOpen: boolean]
  /**
   * A change that closes tunnels. The worker responds with `applied`: in the round `close` when its clients
   * are closed, in the round `end` when other edges pass on nothing more of what came through it.
   */
  apply: [sequence: number, change: KeyChange, round: Round]
  /** The hash of a key that was revoked, which other edges may have clients of. */
  revoked: [hash: string]
  quota: [workspace: string, quota: UsageQuota]
  close: [tunnel: SyncResult['close'][number]]
  /** The client has connected to another worker. It gets no further requests here. */
  drain: [id: string]
  rules: [name: SyncResult['names'][number]]
  otherEdges: [urls: readonly string[]]
  /**
   * Whether the primary receives revocations, and until when the worker may carry traffic, if it may;
   * repeated every half second.
   */
  heartbeat: [isUpToDate: boolean, lease: Moment | null]
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

/** All workers close clients first. What was on its way between workers ends in the second round. */
export type Round = 'close' | 'end'

interface SharedState {
  readonly workers: readonly [id: string, socketPath: string][]
  readonly workerLocations: readonly [host: string, id: string][]
  readonly quotas: readonly [workspace: string, quota: UsageQuota][]
}

/** Functions of the primary that workers call. */
export interface PrimaryCalls {
  verify(key: string): Promise<unknown>
  findHost(host: string): Promise<unknown>
  claim(tunnel: ClaimedTunnel, key: string): Promise<unknown>
  askTls(domain: string): Promise<unknown>
  /** The path at which other workers connect to this one. */
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
