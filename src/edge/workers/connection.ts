// The connection of a worker to the primary of its edge. It takes the place of the control plane: the worker
// verifies keys, claims names and reports usage through it.
import { ClusterState } from '../../edge-sdk/cluster/state.ts'
import type {
  Cluster,
  HostResult,
  Meter,
  TunnelReporter,
  TunnelReporterOptions,
  TunnelUsage,
  Verifier,
  VerifierOptions,
  VerifyResult,
} from '../../edge-sdk/index.ts'
import { UsageQuotas } from '../../edge-sdk/usage/quotas.ts'
import { WatchedLease } from '../../lib/credentials/watched-lease.ts'
import type { TlsAnswer } from '../certificates/tls-ask.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'
import {
  type CallResult,
  fromCallResult,
  type KeyChange,
  type PrimaryCalls,
  type PrimaryNotices,
  QUOTAS_MAX,
  type WorkerNotices,
} from './messages.ts'
import { UsageBuffer } from './usage-buffer.ts'
import { WorkerCluster } from './worker-cluster.ts'
import { receiveLease } from './worker-lease.ts'

/** How long a worker is up to date after a notice of the primary, which sends one every half second. */
const UP_TO_DATE_MS = 2_000

/** What a worker needs of its channel to the primary. */
interface PrimaryChannel {
  call(name: string, args: unknown[]): Promise<unknown>
  notify(name: string, args: unknown[]): Promise<void>
  onNotice(listener: (name: string, args: unknown[]) => void): void
}

type VerifierCallbacks = Pick<Required<VerifierOptions>, 'onRevoked' | 'onArchived' | 'onQuota' | 'onReset'>
type ReporterCallbacks = Pick<
  TunnelReporterOptions,
  'onClose' | 'onAccessRules' | 'onOtherEdges' | 'onLeaseExpired'
>

export class PrimaryConnection {
  readonly otherWorkers: WorkerCluster
  readonly meter: Meter
  readonly #channel: PrimaryChannel
  readonly #usage: UsageBuffer
  readonly #quotas = new UsageQuotas(QUOTAS_MAX)
  readonly #cluster: ClusterState | undefined
  /** Draining clients that the primary knows of. */
  readonly #draining = new Set<string>()
  #verifierCallbacks: VerifierCallbacks | undefined
  #reporterCallbacks: ReporterCallbacks | undefined
  #onDrain: (id: string) => void = () => {}
  /** How many revocations and other changes of keys have arrived. */
  #changes = 0
  #upToDateUntil = 0
  readonly #lease = new WatchedLease({
    onExpired: () => this.#reporterCallbacks?.onLeaseExpired?.(),
    onRenewed() {},
  })
  readonly #attached = Promise.withResolvers<void>()

  /** `id` is the number of this worker. */
  constructor(id: string, channel: PrimaryChannel, hasPeers: boolean) {
    this.#channel = channel
    this.otherWorkers = new WorkerCluster(id)
    this.#cluster = hasPeers ? new ClusterState() : undefined
    this.#usage = new UsageBuffer((usage) => this.#notify('usage', usage))
    this.meter = this.#usage.meter
    channel.onNotice((name, args) => {
      const handle = this.#notices[name as keyof PrimaryNotices] as
        | ((...values: unknown[]) => void)
        | undefined
      handle?.(...args)
    })
  }

  /** Lets other workers connect to this one at the path. Resolves when it knows where their clients are. */
  async attach(socketPath: string): Promise<void> {
    void this.#notify('attached', socketPath)
    await this.#attached.promise
  }

  startVerifier(callbacks: VerifierCallbacks): Verifier {
    this.#verifierCallbacks = callbacks
    return {
      verify: (key) => this.#verify(key),
      // Only a reporter needs grants, and that of the edge runs in the primary.
      grant: async () => undefined,
      findHost: (host) => this.#call<HostResult>('findHost', host),
      isUpToDate: () => performance.now() < this.#upToDateUntil,
      quotaReachedUntil: (workspace) => this.#quotas.reachedUntil(workspace, Date.now()),
      cluster: this.#cluster as Cluster | undefined,
      changes: undefined,
      close() {},
    }
  }

  startReporter(callbacks: ReporterCallbacks): TunnelReporter {
    this.#reporterCallbacks = callbacks
    return {
      claim: (tunnel, key) => this.#call('claim', tunnel, key),
      opened: (tunnel, key, usage: () => TunnelUsage) => {
        this.#usage.add(tunnel.id, usage)
        void this.#notify('opened', tunnel, key)
      },
      closed: (id) => {
        this.#usage.remove(id)
        this.#draining.delete(id)
        void this.#notify('closed', id)
      },
      // The primary syncs for all workers.
      syncNow() {},
      mayCarry: () => this.#lease.isValid(),
      mayCarryUntil: () => (this.#lease.isValid() ? this.#lease.until : undefined),
      release: () => this.#notify('released'),
      stop: async () => this.#lease.stop(),
    }
  }

  /** Where other workers connect to this one. */
  socketPath(): Promise<string> {
    return this.#call('socketPath')
  }

  askTls(domain: string): Promise<TlsAnswer> {
    return this.#call('askTls', domain)
  }

  /** Calls the listener with the id of a client that has connected to another worker. */
  onDrain(listener: (id: string) => void): void {
    this.#onDrain = listener
  }

  /** Tells the primary which clients are draining: others may have their names. */
  onTunnelChanged({ clients }: Pick<Tunnel, 'clients'>): void {
    for (const { id, isDraining } of clients) {
      if (!isDraining || this.#draining.has(id)) continue
      this.#draining.add(id)
      void this.#notify('draining', id)
    }
  }

  /** Asks again if a key has changed meanwhile: the result may be from before the change. */
  async #verify(key: string): Promise<VerifyResult> {
    for (;;) {
      const changes = this.#changes
      const result = await this.#call<VerifyResult>('verify', key)
      if (changes === this.#changes) return result
    }
  }

  async #apply(change: KeyChange): Promise<void> {
    const callbacks = this.#verifierCallbacks
    if (change[0] === 'onRevoked') await callbacks?.onRevoked(change[1], change[2], change[3])
    else if (change[0] === 'onArchived') await callbacks?.onArchived(change[1])
    else {
      // Notices of quotas that were raised may have been missed.
      this.#quotas.clear()
      await callbacks?.onReset()
    }
  }

  async #call<T>(name: keyof PrimaryCalls, ...args: unknown[]): Promise<T> {
    return fromCallResult((await this.#channel.call(name, args)) as CallResult)
  }

  #notify<N extends keyof WorkerNotices>(name: N, ...args: WorkerNotices[N]): Promise<void> {
    return this.#channel.notify(name, args)
  }

  readonly #notices: { [N in keyof PrimaryNotices]: (...args: PrimaryNotices[N]) => void } = {
    state: ({ workers, workerLocations, quotas }) => {
      for (const [id, path] of workers) this.otherWorkers.setWorker(id, path)
      for (const [host, id] of workerLocations) this.otherWorkers.setLocation(host, id, true)
      for (const [workspace, quota] of quotas) this.#quotas.set(workspace, quota)
      this.#attached.resolve()
    },
    worker: (id, path) => this.otherWorkers.setWorker(id, path),
    workerLocation: (host, id, isOpen) => this.otherWorkers.setLocation(host, id, isOpen),
    apply: (sequence, change, round) => {
      this.#changes += 1
      const ended = this.#apply(change)
      const report = () => void this.#notify('applied', sequence)
      if (round === 'close') report()
      else void ended.finally(report)
    },
    revoked: (hash) => this.#cluster?.revoked(hash),
    quota: (workspace, quota) => {
      if (this.#quotas.set(workspace, quota)) this.#verifierCallbacks?.onQuota(workspace, quota)
    },
    close: (tunnel) => this.#reporterCallbacks?.onClose(tunnel),
    drain: (id) => this.#onDrain(id),
    rules: (name) => this.#reporterCallbacks?.onAccessRules(name),
    otherEdges: (urls) => this.#reporterCallbacks?.onOtherEdges?.(urls),
    heartbeat: (isUpToDate, lease) => {
      this.#upToDateUntil = isUpToDate ? performance.now() + UP_TO_DATE_MS : 0
      if (lease) return this.#lease.renewUntil(receiveLease(lease))
      this.#lease.end()
      this.#lease.isValid()
    },
    peers: (data) => this.#cluster?.applyPeers(data),
    locations: (data) => this.#cluster?.applyLocations(data),
  }
}
