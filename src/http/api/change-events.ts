// The stream of revocations to an edge, as server-sent events.
import type { Change, ChangeFollower, Position } from '../../directory/change-follower.ts'
import { StreamReplaced } from './change-streams.ts'

/** Silence for longer means that something is lost. */
const COMMENT_EVERY_MS = 5_000
/** Whoever reads that slowly is better off resuming from where it was. */
const PENDING_MAX = 10_000

const COMMENT = ': still here\n\n'

export interface ListeningEdge {
  id: string
  isStillGood: () => Promise<boolean>
  /** How far it has heard, if it has heard anything. */
  after: Position | undefined
  /** Aborted when the stream is to end; an edge whose stream was replaced is told so. */
  closing: AbortSignal
}

/** Ends when the edge itself is revoked. */
export async function* keyChanges(follower: ChangeFollower, edge: ListeningEdge): AsyncGenerator<string> {
  const { after, closing } = edge
  const pending: Change[] = []
  let wake: () => void = () => {}
  let ended = false
  let unsubscribe: () => void = () => {}
  // At once, also while the edge reads nothing and the generator does not run.
  const end = () => {
    ended = true
    pending.length = 0
    unsubscribe()
    wake()
  }
  // An edge that comes from a node which is ahead of this one has missed nothing.
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

  try {
    closing.addEventListener('abort', end)
    if (closing.aborted) return yield* farewell(closing)
    // Asked once more now that every later revocation is heard: one that came while the edge connected was not.
    if (!(await edge.isStillGood())) return
    const missed = after === undefined ? undefined : await follower.backlog(after, position)
    if (missed) {
      for (const change of missed) yield eventOf(change)
    } else {
      if (after !== undefined) yield 'event: reset\ndata: {}\n\n'
      // Another node, which lags behind, may still answer that such a key is good: the edge must know better. Without an
      // id, because they lie before the position.
      for (const change of await follower.latest(position)) if (change.kind === 'key') yield revoked(change)
    }
    // An id without data tells where the edge stands, and is no event: now it has heard everything.
    yield `id: ${idOf(position)}\n\n`

    while (!ended) {
      const change = pending.shift()
      if (change) {
        if (change.kind === 'edge' && change.subjectId === edge.id) return
        yield eventOf(change)
        continue
      }
      const { promise, resolve } = Promise.withResolvers<void>()
      wake = resolve
      const timer = setTimeout(resolve, COMMENT_EVERY_MS)
      await promise
      clearTimeout(timer)
      // Silent while the change log cannot be read.
      if (!ended && pending.length === 0 && follower.ageMs() < COMMENT_EVERY_MS) yield COMMENT
    }
    yield* farewell(closing)
  } finally {
    unsubscribe()
    closing.removeEventListener('abort', end)
  }
}

/** Edges learn of keys; that another edge was revoked moves only their number on. */
const eventOf = (change: Change) => `id: ${idOf(change)}\n${change.kind === 'key' ? revoked(change) : '\n'}`

const idOf = ({ sequence, checksum }: Position) => `${sequence}-${checksum}`

export function parseEventId(id: string): Position {
  const [sequence, checksum = ''] = id.split('-')
  return { sequence: Number(sequence), checksum }
}

const revoked = ({ subjectId: keyId, hash }: Change) =>
  `event: revoked\ndata: ${JSON.stringify({ keyId, hash })}\n\n`

function* farewell({ reason }: AbortSignal): Generator<string> {
  if (reason instanceof StreamReplaced)
    yield `event: closed\ndata: ${JSON.stringify({ message: reason.message })}\n\n`
}
