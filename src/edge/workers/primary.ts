// The primary of an edge with several workers. To the control plane it is the edge: it verifies keys, counts
// usage and reports tunnels for all workers. It carries no traffic.
import { ClusterState } from '../../edge-sdk/cluster/state.ts'
import type {
  ClaimedTunnel,
  ClaimResult,
  Meter,
  TunnelReporter,
  TunnelUsage,
  UsageQuota,
  Verifier,
} from '../../edge-sdk/index.ts'
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import type { Moment } from '../../lib/credentials/lease.ts'
import { hashSecret } from '../../lib/credentials/secret.ts'
import type { CertificateLimits } from '../certificates/budget.ts'
import { TlsAsk } from '../certificates/tls-ask.ts'
import { reverify } from '../control-plane/reverification.ts'
import type { EdgeOptions } from '../options.ts'
import { type CountRule, TunnelCount } from '../tunnels/count.ts'
import { KeyChanges } from './key-changes.ts'
import { LocalClaims } from './local-claims.ts'
import {
  type PrimaryCalls,
  type PrimaryNotices,
  QUOTAS_MAX,
  toCallResult,
  type WorkerNotices,
} from './messages.ts'
import { OpenNames, parseHostName } from './open-names.ts'
import { createSocketFolder } from './socket-folder.ts'
import { shareLease } from './worker-lease.ts'

/** How long the last notices of workers that have exited may take. */
const LAST_NOTICES_MS = 2_000
const HEARTBEAT_INTERVAL_MS = 500
/** The limit and the usage of an edge without a control plane. */
const NO_LIMIT: Moment = { monotonic: Number.POSITIVE_INFINITY, wall: Number.POSITIVE_INFINITY }
const NO_USAGE: TunnelUsage = { requests: 0, bytesIn: 0, bytesOut: 0, streams: 0 }

interface EdgePrimaryOptions
  extends CertificateLimits,
    Pick<EdgeOptions, 'startVerifier' | 'startReporter' | 'meter' | 'localPorts'> {
  /** Sends a notice to a worker. */
  notify(worker: string, name: string, args: unknown[]): void
}

export class EdgePrimary {
  readonly #options: EdgePrimaryOptions
  readonly #meter: Meter | undefined
  readonly #verifier: Verifier
  readonly #reporter: TunnelReporter | undefined
  /** Decides about claims without a control plane. */
  readonly #localClaims: LocalClaims
  readonly #tlsAsk: TlsAsk
  /** The paths of the sockets of workers. */
  readonly #workers = new Map<string, string>()
  readonly #changes = new KeyChanges((worker, ...change) => this.#notify(worker, 'apply', ...change))
  readonly #names = new OpenNames((...location) => this.#notifyAll('workerLocation', ...location))
  readonly #quotas = new BoundedMap<string, UsageQuota>(QUOTAS_MAX)
  /** The usage of each client since it was opened, by id, as its worker has last reported it. */
  readonly #totals = new Map<string, TunnelUsage>()
  /** Whether this edge counts the tunnel of a host, by the host of each open tunnel. */
  readonly #counts = new Map<string, TunnelCount>()
  /** By host, from the grant of a claim until the tunnel is open. */
  readonly #countRules = new Map<string, CountRule>()
  readonly #heartbeat: NodeJS.Timeout
  readonly #socketFolder = createSocketFolder()
  #onAllGone: (() => void) | undefined
  /** Workers that stop, and whose tunnels are open at other edges as far as possible. */
  readonly #movedWorkers = new Set<string>()
  #isStopping = false
  #released: Promise<void> | undefined

  constructor(options: EdgePrimaryOptions) {
    this.#options = options
    const { meter, localPorts, startReporter } = options
    this.#meter = meter
    this.#verifier = options.startVerifier({
      onRevoked: (...args) => this.#changes.apply(['onRevoked', ...args]),
      onArchived: (...args) => this.#changes.apply(['onArchived', ...args]),
      onReset: () => this.#onReset(),
      onQuota: (workspace, quota) => {
        this.#quotas.set(workspace, quota)
        this.#notifyAll('quota', workspace, quota)
      },
      onTunnelsChanged: () => this.#reporter?.syncNow(),
    })
    this.#reporter = startReporter?.({
      verifier: this.#verifier,
      onClose: (tunnel) => this.#notifyAll('close', tunnel),
      onAccessRules: (name) => {
        for (const tunnel of this.#names.tunnels())
          if (tunnel.workspace === name.workspace && tunnel.name === name.name)
            this.#counts.get(parseHostName(tunnel))?.set(name)
        this.#notifyAll('rules', name)
      },
      onOtherEdges: (urls) => this.#notifyAll('otherEdges', urls),
      onLeaseExpired: () => this.#sendHeartbeats(),
      onLeaseRenewed: () => this.#sendHeartbeats(),
    })
    this.#localClaims = new LocalClaims(localPorts, () => this.#names.tunnels())
    this.#tlsAsk = new TlsAsk({
      ...options,
      registry: { atHost: (host) => this.#names.atHost(host) },
      findHost: (host) => this.#verifier.findHost(host),
    })
    const { cluster } = this.#verifier
    if (cluster instanceof ClusterState) {
      cluster.onEvent((event, data) => this.#notifyAll(event, data))
      cluster.onRevoked((hash) => this.#notifyAll('revoked', hash))
    }
    this.#heartbeat = setInterval(() => this.#sendHeartbeats(), HEARTBEAT_INTERVAL_MS).unref()
  }

  readonly metrics = {
    openTunnels: (): Iterable<{ readonly type: string }> => this.#names.tunnels(),
    isUpToDate: () => this.#verifier.isUpToDate(),
    spoolBytes: () => this.#meter?.spoolBytes() ?? 0,
  }

  /** Calls a function of the primary for a worker. The error of the function is part of the result. */
  handleCall(worker: string, name: string, args: unknown[]): unknown {
    const calls: PrimaryCalls = {
      verify: (key) => this.#verifier.verify(key),
      findHost: (host) => this.#verifier.findHost(host),
      claim: (tunnel, key) => this.#claim(worker, tunnel, key),
      askTls: (domain) => this.#tlsAsk.ask(domain),
      socketPath: async () => this.#socketFolder.path(worker),
    }
    const call = calls[name as keyof PrimaryCalls] as (...values: unknown[]) => Promise<unknown>
    return toCallResult(() => call(...args))
  }

  onNotice(worker: string, name: string, args: unknown[]): void {
    const notices: { [N in keyof WorkerNotices]: (...values: WorkerNotices[N]) => void } = {
      attached: (socketPath) => this.#attach(worker, socketPath),
      opened: (tunnel, key) => this.#onOpened(worker, tunnel, key),
      draining: (id) => this.#onDraining(id),
      closed: (id) => this.#onClosed(id),
      released: () => {
        for (const client of this.#names.clients()) if (client.worker === worker) client.isDraining = true
        // One that was being replaced before may serve its tunnels until it exits.
        if (this.#isStopping) this.#movedWorkers.add(worker)
        this.#releaseIfMoved()
      },
      usage: ({ transfers, rejected, totals }) => {
        for (const [workspace, requests, bytesIn, bytesOut] of transfers)
          this.#meter?.transferred(workspace, { requests, bytesIn, bytesOut })
        for (const [workspace, count] of rejected)
          for (let each = 0; each < count; each += 1) this.#meter?.rejected(workspace)
        for (const [id, usage] of totals) if (this.#names.client(id)) this.#totals.set(id, usage)
      },
      applied: (sequence) => this.#changes.onApplied(worker, sequence),
    }
    const handle = notices[name as keyof WorkerNotices] as ((...values: unknown[]) => void) | undefined
    // Workers that SIGHUP has replaced after an upgrade may send notices that this version does not know.
    handle?.(...args)
  }

  /** The worker has exited, and its last notice was received. */
  onGone(worker: string): void {
    const wasAttached = this.#workers.delete(worker)
    this.#changes.removeWorker(worker)
    this.#movedWorkers.delete(worker)
    this.#releaseIfMoved()
    for (const client of [...this.#names.clients()])
      if (client.worker === worker) this.#onClosed(client.tunnel.id)
    if (wasAttached) this.#notifyAll('worker', worker, null)
    this.#socketFolder.remove(worker)
    if (this.#workers.size === 0) this.#onAllGone?.()
  }

  /** Releases all names when each worker has moved its tunnels, while the workers drain. */
  releaseWithWorkers(): void {
    this.#isStopping = true
    this.#releaseIfMoved()
  }

  #releaseIfMoved(): void {
    if (this.#isStopping && this.#workers.keys().every((id) => this.#movedWorkers.has(id)))
      void this.#release()
  }

  async #release(): Promise<void> {
    // Other edges count the tunnels from the next minute.
    for (const count of this.#counts.values()) count.set({ counts: false })
    this.#released ??= this.#reporter?.release()
    await this.#released
  }

  /** Call it after the workers have exited. Waits for their last notices. */
  async stop(): Promise<void> {
    clearInterval(this.#heartbeat)
    await this.#waitForLastNotices()
    // If they were not released before: a second signal stops the workers at once.
    await this.#release()
    await this.#reporter?.stop()
    this.#socketFolder.close()
    this.#verifier.close()
    this.#localClaims.close()
    await this.#meter?.stop()
    await this.#options.localPorts?.close()
  }

  async #waitForLastNotices(): Promise<void> {
    if (this.#workers.size === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onAllGone = resolve
    const timer = setTimeout(resolve, LAST_NOTICES_MS)
    await promise
    clearTimeout(timer)
  }

  #attach(worker: string, socketPath: string): void {
    const workers = [...this.#workers]
    this.#notifyAll('worker', worker, socketPath)
    this.#workers.set(worker, socketPath)
    this.#changes.addWorker(worker)
    const workerLocations = [...this.#names.locations()]
    this.#notify(worker, 'state', { workers, workerLocations, quotas: [...this.#quotas] })
    this.#sendHeartbeats()
    const { cluster } = this.#verifier
    if (cluster instanceof ClusterState)
      for (const [event, data] of cluster.export()) this.#notify(worker, event, data)
  }

  async #claim(worker: string, tunnel: ClaimedTunnel, key: string): Promise<ClaimResult> {
    const rejection = this.#names.claim(tunnel, worker, key)
    if (rejection) return rejection
    try {
      const result = await (this.#reporter ?? this.#localClaims).claim(tunnel, key)
      if (!result.granted) this.#names.remove(tunnel.id)
      else if (this.#names.client(tunnel.id)) this.#countRules.set(parseHostName(tunnel), result)
      return result
    } catch (error) {
      this.#names.remove(tunnel.id)
      throw error
    }
  }

  #onOpened(worker: string, tunnel: ClaimedTunnel, key: string): void {
    if (!this.#workers.has(worker)) return
    const host = parseHostName(tunnel)
    this.#names.add(tunnel, worker, key)
    this.#reporter?.opened(tunnel, key, () => this.#totals.get(tunnel.id) ?? NO_USAGE)
    if (!this.#counts.has(host)) {
      const count = new TunnelCount(this.#meter, tunnel.workspace)
      this.#counts.set(host, count)
      count.open(this.#countRules.get(host) ?? {})
    }
    this.#countRules.delete(host)
    this.#closePrevious(worker, tunnel)
  }

  /**
   * A client that reconnects after an interruption may reach another worker, which cannot close the previous
   * connection itself. A client of a stopping worker drains as soon as it has connected to another one.
   */
  #closePrevious(worker: string, tunnel: ClaimedTunnel): void {
    for (const other of this.#names.others(tunnel)) {
      if (other.worker === worker) continue
      const { id, resume, session } = other.tunnel
      if (resume !== undefined && resume === tunnel.resume)
        this.#notify(other.worker, 'close', { id, reason: 'moved', message: 'The client has reconnected.' })
      else if (other.isDraining && session !== undefined && session === tunnel.session)
        this.#notify(other.worker, 'drain', id)
    }
  }

  #onDraining(id: string): void {
    const client = this.#names.client(id)
    if (client) client.isDraining = true
  }

  #onClosed(id: string): void {
    const client = this.#names.remove(id)
    this.#totals.delete(id)
    this.#reporter?.closed(id)
    if (!client) return
    const host = parseHostName(client.tunnel)
    if (this.#names.atHost(host)) return
    this.#countRules.delete(host)
    this.#counts.get(host)?.close()
    this.#counts.delete(host)
  }

  /**
   * Revocations may have been missed. Workers respond after the notices of what they opened before, so then
   * all older clients are known here.
   */
  async #onReset(): Promise<void> {
    // A raised quota may have been missed, as in the workers.
    this.#quotas.clear()
    await this.#changes.applyRound(['onReset'], 'close')
    await reverify({
      registry: this.#names,
      verify: (key) => this.#verifier.verify(key),
      onInvalid: ({ id, secret }) => this.#changes.apply(['onRevoked', id, 'revoked', hashSecret(secret)]),
    })
  }

  #sendHeartbeats(): void {
    const until = this.#reporter ? this.#reporter.mayCarryUntil() : NO_LIMIT
    this.#notifyAll('heartbeat', this.#verifier.isUpToDate(), until ? shareLease(until) : null)
  }

  #notifyAll<N extends keyof PrimaryNotices>(name: N, ...args: PrimaryNotices[N]): void {
    for (const worker of this.#workers.keys()) this.#notify(worker, name, ...args)
  }

  #notify<N extends keyof PrimaryNotices>(worker: string, name: N, ...args: PrimaryNotices[N]): void {
    this.#options.notify(worker, name, args)
  }
}
