// The stream of revocations and other changes to an edge, as server-sent events.

import type { WorkspaceView } from '../../domain/workspaces/manage.ts'
import {
  type Change,
  type ChangeFollower,
  formatPosition,
  type Position,
} from '../../verification/change-follower.ts'
import { StreamReplaced } from './change-streams.ts'
import type { ClusterEvents } from './cluster/events.ts'

/** Sent when idle, so that the edge can detect a lost connection. */
const HEARTBEAT_INTERVAL_MS = 5_000
/** An edge that reads this slowly is disconnected, and resumes from its last event id. */
const PENDING_MAX = 10_000

const HEARTBEAT = ': still here\n\n'
/** Makes the edge sync at once; the response to the sync says what has changed. */
const TUNNELS_CHANGED = 'event: tunnels-changed\ndata: {}\n\n'

interface SubscribedEdge {
  id: string
  isStillValid: () => Promise<boolean>
  /** The topic identifies the workspace only to edges that have verified one of its keys. */
  describeWorkspace: (workspaceId: string) => Promise<Pick<WorkspaceView, 'topic' | 'quota'>>
  /** The last event id, if the edge resumes. */
  after: Position | undefined
  /** Aborted to end the stream. If a newer stream replaces it, the edge gets the reason. */
  closing: AbortSignal
  /** Opens the events of the edge's group; undefined if the edge did not ask for them. */
  openCluster: ((callbacks: ClusterCallbacks) => Promise<ClusterEvents>) | undefined
}

type ClusterCallbacks = { onReady: () => void; onEnd: () => void }

/** The stream ends when the edge is revoked. */
export async function* keyChanges(follower: ChangeFollower, edge: SubscribedEdge): AsyncGenerator<string> {
  const { after, closing } = edge
  const pending: Change[] = []
  let wake: () => void = () => {}
  let isEnded = false
  let unsubscribe: () => void = () => {}
  let cluster: ClusterEvents | undefined
  // Releases the buffer also while the generator is suspended because the edge does not read.
  const end = () => {
    isEnded = true
    pending.length = 0
    unsubscribe()
    wake()
  }
  // The edge may come from a node that is ahead of this one.
  if (after !== undefined) await follower.catchUpTo(after.sequence)
  const subscription = follower.subscribe({
    onChange(change) {
      pending.push(change)
      if (pending.length > PENDING_MAX) end()
      wake()
    },
    onReset: end,
  })
  const { position } = subscription
  unsubscribe = subscription.unsubscribe

  /**
   * Edges are notified of keys, quotas, archived workspaces and their own tunnels. Any other change only
   * advances the position. Ids and slugs are left out: this edge may never have seen the key or workspace.
   */
  async function renderData({ kind, subjectId, hash, expiresAt }: Change): Promise<string> {
    if (kind === 'workspace-archived' || kind === 'workspace-restored')
      return dataEvent(kind, { topic: (await edge.describeWorkspace(subjectId)).topic })
    if (kind === 'workspace-quota') {
      const { topic, quota } = await edge.describeWorkspace(subjectId)
      return quota ? dataEvent('quota-changed', { topic, quota }) : '\n'
    }
    if (kind === 'key') return dataEvent('revoked', { hash })
    if (kind === 'key-expiry' && expiresAt !== null) {
      const expiresInMs = Math.max(0, Math.floor(expiresAt - follower.databaseTime()))
      return dataEvent('expiry-changed', { hash, expiresInMs })
    }
    return kind === 'tunnels' && subjectId === edge.id ? TUNNELS_CHANGED : '\n'
  }
  const renderEvent = async (change: Change) => `id: ${formatPosition(change)}\n${await renderData(change)}`

  try {
    closing.addEventListener('abort', end)
    if (closing.aborted) return yield* closingEvent(closing)
    // Checked again after subscribing: the edge may have been revoked while it connected.
    if (!(await edge.isStillValid())) return
    const missed = after === undefined ? undefined : await follower.backlog(after, position)
    if (missed) {
      for (const change of missed) yield await renderEvent(change)
    } else {
      if (after !== undefined) yield 'event: reset\ndata: {}\n\n'
      // A node that lags behind may still report such a key as valid. These changes precede the position, so
      // they are sent without an id.
      for (const change of await follower.latest(position)) yield await renderData(change)
    }
    // An id without data is not an event, but sets the position of the edge, which is now up to date.
    yield `id: ${formatPosition(position)}\n\n`
    cluster = await edge.openCluster?.({ onReady: () => wake(), onEnd: end })

    while (!isEnded) {
      const change = pending.shift()
      if (change) {
        if (change.kind === 'edge' && change.subjectId === edge.id) return
        yield await renderEvent(change)
        continue
      }
      // Changes go first: revocations must not wait for a long list of locations.
      if (cluster?.isReady) {
        const event = await cluster.next()
        if (event !== '') yield event
        continue
      }
      const { promise, resolve } = Promise.withResolvers<void>()
      wake = resolve
      const timer = setTimeout(resolve, HEARTBEAT_INTERVAL_MS)
      await promise
      clearTimeout(timer)
      // No heartbeat while the change log cannot be read: the edge must not consider itself up to date.
      if (!isEnded && pending.length === 0 && follower.ageMs() < HEARTBEAT_INTERVAL_MS) yield HEARTBEAT
    }
    yield* closingEvent(closing)
  } finally {
    unsubscribe()
    cluster?.close()
    closing.removeEventListener('abort', end)
  }
}

const dataEvent = (name: string, data: object) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`

function* closingEvent({ reason }: AbortSignal): Generator<string> {
  if (reason instanceof StreamReplaced) yield dataEvent('closed', { message: reason.message })
}
