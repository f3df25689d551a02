// Follows the control plane's stream of revocations (server-sent events), and tracks whether this edge is up
// to date.
import { setTimeout as sleep } from 'node:timers/promises'
import type * as contract from '../../contract/edge/operations.ts'
import type { UsageQuota } from '../api.ts'
import type { ClusterState } from '../cluster/state.ts'
import type { ControlPlane } from '../control-plane.ts'
import { startEventLoopClock } from '../event-loop-clock.ts'
import { createNoticeOnce } from '../notice-once.ts'
import type { AppliedChanges } from './applied-changes.ts'

/** Asks for all locations. */
const NO_LOCATIONS: typeof contract.NO_LOCATIONS = 'none'
const BACKOFF_MIN_MS = 250
const BACKOFF_MAX_MS = 5_000

interface KeyRef {
  /** SHA-256 of the raw key. */
  hash: string
}

interface ExpiryChange extends KeyRef {
  expiresInMs: number
}

interface FollowerOptions {
  /** Silence for longer than this means that the stream is lost. */
  staleAfterMs: number
  onRevoked: (key: KeyRef) => void
  /** The expiry of a key was brought forward. */
  onExpiryChanged: (change: ExpiryChange) => void
  /** A workspace was archived, so none of its keys is valid, or restored. `topic` identifies it in events. */
  onArchivedChanged: (topic: string, isArchived: boolean) => void
  /** The quota of a workspace, or what is used of it, has changed. */
  onQuotaChanged: (topic: string, quota: UsageQuota) => void
  /** The control plane asks for a sync of tunnels. */
  onTunnelsChanged: () => void
  /** Revocations may have been missed. */
  onReset: () => void
  /** The stream is up to date for the first time, or again after an outage longer than `staleAfterMs`. */
  onFresh: () => void
  /** The stream is up to date: once after the start, and after each reconnection. */
  onConnected: () => void
  onNotice: (line: string) => void
  changes: Pick<AppliedChanges, 'latestId' | 'received'>
  /** Gets peers and locations, if the edge follows them. */
  cluster: ClusterState | undefined
}

export function followKeyChanges(controlPlane: Pick<ControlPlane, 'keyChanges'>, options: FollowerOptions) {
  const { staleAfterMs, cluster, changes } = options
  const outage = createNoticeOnce(options.onNotice, 'Receiving revocations again.')
  const clock = startEventLoopClock()
  const stopping = new AbortController()
  let freshAt = Number.NEGATIVE_INFINITY

  /** Whether every revocation up to `staleAfterMs` ago has been received. */
  const isFresh = () => performance.now() - freshAt <= staleAfterMs

  async function readStream(): Promise<void> {
    const silence = new AbortController()
    const silent = new Error(`nothing was received for ${staleAfterMs} ms`)
    const watchdog = setTimeout(() => silence.abort(silent), staleAfterMs)
    try {
      const signal = AbortSignal.any([stopping.signal, silence.signal])
      let caughtUp = false
      cluster?.onStreamStart()
      const locations = cluster && (cluster.position ?? NO_LOCATIONS)
      const events = await controlPlane.keyChanges(changes.latestId, signal, locations)
      for await (const { id, event, data } of events) {
        // The event may be old: it was buffered while this process was suspended. Reconnect instead.
        if (caughtUp && !isFresh()) throw silent
        watchdog.refresh()
        if (event === 'closed') throw new ClosedByServer(parseMessage(data))
        if (event === 'reset') options.onReset()
        else if (event === 'revoked') options.onRevoked(parseKeyRef(data))
        else if (event === 'expiry-changed') options.onExpiryChanged(parseExpiryChange(data))
        else if (event === 'workspace-archived') options.onArchivedChanged(parseTopic(data), true)
        else if (event === 'workspace-restored') options.onArchivedChanged(parseTopic(data), false)
        else if (event === 'quota-changed') options.onQuotaChanged(parseTopic(data), parseQuota(data))
        else if (event === 'tunnels-changed') options.onTunnelsChanged()
        else if (event === 'peers') cluster?.applyPeers(data ?? '')
        else if (event === 'locations') cluster?.applyLocations(data ?? '')
        if (id !== undefined) changes.received(id)
        // Missed revocations come first. After the last of them, there is an id without an event.
        if (id !== undefined && event === undefined && !caughtUp) {
          caughtUp = true
          if (!isFresh()) options.onFresh()
          outage.end()
          options.onConnected()
        }
        if (caughtUp) freshAt = Math.max(freshAt, clock.readingSince())
      }
      throw new Error('the control plane closed the connection')
    } catch (error) {
      throw silence.signal.aborted ? silent : error
    } finally {
      clearTimeout(watchdog)
    }
  }

  async function follow(): Promise<void> {
    let backoffMs = BACKOFF_MIN_MS
    while (!stopping.signal.aborted) {
      const startedAt = performance.now()
      let wasClosed = false
      try {
        await readStream()
      } catch (error) {
        if (stopping.signal.aborted) return
        wasClosed = error instanceof ClosedByServer
        const reason = (error instanceof Error ? error.message : String(error)).replace(/\.$/, '')
        outage.begin(
          changes.latestId === undefined
            ? `Cannot open the stream of revocations: ${reason}. Keys are not cached. Retrying.`
            : `Lost the stream of revocations: ${reason}. Cached keys expire ${staleAfterMs} ms after the ` +
                'last event; then every key is verified by the control plane. Retrying.',
        )
      }
      // A connection that worked resets the backoff. If the server closed the stream, the delay is the
      // maximum: the server closes the oldest stream when there are too many, and edges would take turns
      // closing each other's.
      if (wasClosed) backoffMs = BACKOFF_MAX_MS
      else backoffMs = freshAt > startedAt ? BACKOFF_MIN_MS : Math.min(backoffMs * 2, BACKOFF_MAX_MS)
      // Jitter, so that edges do not reconnect simultaneously.
      const delayMs = backoffMs * (0.5 + Math.random() / 2)
      await sleep(delayMs, undefined, { signal: stopping.signal, ref: false }).catch(() => {})
    }
  }

  void follow()
  return {
    isFresh,
    stop() {
      stopping.abort()
      clock.stop()
    },
  }
}

/** The control plane closed the stream and sent the reason. */
class ClosedByServer extends Error {}

function parseMessage(data = '{}'): string {
  const { message } = JSON.parse(data) as { message?: unknown }
  return typeof message === 'string' ? message : 'the control plane closed the stream'
}

function parseKeyRef(data = ''): KeyRef {
  const { hash } = JSON.parse(data) as Partial<KeyRef>
  if (typeof hash !== 'string') throw new Error('the control plane sent an event without a hash')
  return { hash }
}

function parseTopic(data = ''): string {
  const { topic } = JSON.parse(data) as { topic?: unknown }
  if (typeof topic !== 'string') throw new Error('the control plane sent an event without a topic')
  return topic
}

function parseQuota(data = ''): UsageQuota {
  const { quota } = JSON.parse(data) as { quota?: Partial<UsageQuota> }
  if (typeof quota?.revision !== 'number')
    throw new Error('the control plane sent a quota without a revision')
  return quota as UsageQuota
}

function parseExpiryChange(data = ''): ExpiryChange {
  const { expiresInMs } = JSON.parse(data) as Partial<ExpiryChange>
  if (typeof expiresInMs !== 'number') throw new Error('the control plane sent an expiry without expiresInMs')
  return { ...parseKeyRef(data), expiresInMs }
}
