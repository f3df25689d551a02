// The stream of revocations and other changes to an edge, as server-sent events.

import type { WorkspaceView } from '../../domain/workspaces/manage.ts'
import type { Change, ChangeFollower, Position } from '../../verification/change-follower.ts'
import { StreamReplaced } from './change-streams.ts'

/** Sent when idle, so that the edge can detect a lost connection. */
const HEARTBEAT_INTERVAL_MS = 5_000
/** An edge that reads this slowly is disconnected, and resumes from its last event id. */
const PENDING_MAX = 10_000

const HEARTBEAT = ': still here\n\n'
/** The edge syncs at once; what has changed is in the response. */
const TUNNELS_CHANGED = 'event: tunnels-changed\ndata: {}\n\n'

interface SubscribedEdge {
  id: string
  isStillValid: () => Promise<boolean>
  /** What names the workspace to edges that have verified one of its keys, and nothing to others. */
  describeWorkspace: (workspaceId: string) => Promise<Pick<WorkspaceView, 'topic' | 'quota'>>
  /** Its last event id, if it resumes. */
  after: Position | undefined
  /** Aborted to end the stream; if it was replaced, the edge gets the reason. */
  closing: AbortSignal
}

/** Ends when the edge itself is revoked. */
export async function* keyChanges(follower: ChangeFollower, edge: SubscribedEdge): AsyncGenerator<string> {
  const { after, closing } = edge
  const pending: Change[] = []
  let wake: () => void = () => {}
  let ended = false
  let unsubscribe: () => void = () => {}
  // Releases the buffer even if the edge does not read, and the generator is suspended.
  const end = () => {
    ended = true
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
   * Edges are notified of keys, quotas, archived workspaces and their own tunnels. Any other change just
   * advances the position. No ids and slugs: this edge may never have seen the key or workspace.
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
  const renderEvent = async (change: Change) => `id: ${toEventId(change)}\n${await renderData(change)}`

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
      // A node that lags behind may still report such a key as valid. No id: they precede the position.
      for (const change of await follower.latest(position)) yield await renderData(change)
    }
    // An id without data sets the position of the edge, and is not an event: the edge is up to date.
    yield `id: ${toEventId(position)}\n\n`

    while (!ended) {
      const change = pending.shift()
      if (change) {
        if (change.kind === 'edge' && change.subjectId === edge.id) return
        yield await renderEvent(change)
        continue
      }
      const { promise, resolve } = Promise.withResolvers<void>()
      wake = resolve
      const timer = setTimeout(resolve, HEARTBEAT_INTERVAL_MS)
      await promise
      clearTimeout(timer)
      // Silent while the change log cannot be read.
      if (!ended && pending.length === 0 && follower.ageMs() < HEARTBEAT_INTERVAL_MS) yield HEARTBEAT
    }
    yield* closingEvent(closing)
  } finally {
    unsubscribe()
    closing.removeEventListener('abort', end)
  }
}

const toEventId = ({ sequence, checksum }: Position) => `${sequence}-${checksum}`

export function parseEventId(id: string): Position {
  const [sequence, checksum = ''] = id.split('-')
  return { sequence: Number(sequence), checksum }
}

const dataEvent = (name: string, data: object) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`

function* closingEvent({ reason }: AbortSignal): Generator<string> {
  if (reason instanceof StreamReplaced)
    yield `event: closed\ndata: ${JSON.stringify({ message: reason.message })}\n\n`
}
