// Follows the control plane's stream of revocations, and knows how fresh what it heard is.
import { setTimeout as sleep } from 'node:timers/promises'
import type { ControlPlane } from './control-plane.ts'
import { startEventLoopClock } from './event-loop-clock.ts'
import { createNoticeOnce } from './notice-once.ts'

const RETRY_FIRST_MS = 250
const RETRY_MAX_MS = 5_000

export interface Revocation {
  keyId: string
  hash: string
}

export interface FollowerOptions {
  /** Silence for longer is loss. */
  lossAfterMs: number
  onRevoked: (revocation: Revocation) => void
  /** Revocations may have been missed for good. */
  onReset: () => void
  /** The stream was lost for longer than the bound, and is back: what was missed has been told. */
  onRegained: () => void
  onNotice: (line: string) => void
}

export interface Follower {
  /** Whether every revocation up to `lossAfterMs` ago has been heard. */
  isFresh(): boolean
  stop(): void
}

export function followKeyChanges(controlPlane: ControlPlane, options: FollowerOptions): Follower {
  const { lossAfterMs } = options
  const outage = createNoticeOnce(options.onNotice, 'The control plane tells of revocations again.')
  const pulse = startEventLoopClock()
  const stopping = new AbortController()
  let lastId: string | undefined
  let freshAt = Number.NEGATIVE_INFINITY

  const isFresh = () => performance.now() - freshAt <= lossAfterMs

  async function listen(): Promise<void> {
    const silence = new AbortController()
    const silent = new Error(`nothing was heard for ${lossAfterMs} ms`)
    const watchdog = setTimeout(() => silence.abort(silent), lossAfterMs)
    try {
      const signal = AbortSignal.any([stopping.signal, silence.signal])
      let caughtUp = false
      for await (const { id, event, data } of await controlPlane.keyChanges(lastId, signal)) {
        // It lay in a buffer while this process stood still, and tells of the past; a new connection tells of now.
        if (caughtUp && !isFresh()) throw silent
        watchdog.refresh()
        if (event === 'closed') throw new ClosedByServer(readMessage(data))
        if (event === 'reset') options.onReset()
        else if (event === 'revoked') options.onRevoked(readRevocation(data))
        if (id !== undefined) lastId = id
        // What was missed comes first, one by one; an id alone ends it.
        if (id !== undefined && event === undefined && !caughtUp) {
          caughtUp = true
          if (!isFresh()) options.onRegained()
          outage.end()
        }
        if (caughtUp) freshAt = Math.max(freshAt, pulse.readingSince())
      }
      throw new Error('the control plane ended it')
    } catch (error) {
      throw silence.signal.aborted ? silent : error
    } finally {
      clearTimeout(watchdog)
    }
  }

  async function follow(): Promise<void> {
    let retryMs = RETRY_FIRST_MS
    while (!stopping.signal.aborted) {
      const began = performance.now()
      let wasClosed = false
      try {
        await listen()
      } catch (error) {
        if (stopping.signal.aborted) return
        wasClosed = error instanceof ClosedByServer
        const reason = (error instanceof Error ? error.message : String(error)).replace(/\.$/, '')
        outage.begin(
          `Revocations cannot be followed: ${reason}. Keys are remembered for ${lossAfterMs} ms from when they last ` +
            'could be; then the control plane is asked about each.',
        )
      }
      // A connection that held was no failed attempt. One that was replaced would replace another in turn.
      if (wasClosed) retryMs = RETRY_MAX_MS
      else retryMs = freshAt > began ? RETRY_FIRST_MS : Math.min(retryMs * 2, RETRY_MAX_MS)
      // Not all edges at the same moment.
      const pause = retryMs * (0.5 + Math.random() / 2)
      await sleep(pause, undefined, { signal: stopping.signal, ref: false }).catch(() => {})
    }
  }

  void follow()
  return {
    isFresh,
    stop() {
      stopping.abort()
      pulse.stop()
    },
  }
}

/** The control plane said why it closes the stream. */
class ClosedByServer extends Error {}

function readMessage(data = '{}'): string {
  const { message } = JSON.parse(data) as { message?: unknown }
  return typeof message === 'string' ? message : 'the control plane closed the stream'
}

function readRevocation(data = ''): Revocation {
  const { keyId, hash } = JSON.parse(data) as Partial<Revocation>
  if (typeof keyId !== 'string' || typeof hash !== 'string')
    throw new Error('the control plane told of a revocation without saying of which key')
  return { keyId, hash }
}
