// Proves that the database of a node is still the primary: only then does a synchronous standby confirm its
// commits. For ADIT_FENCING=strict.
import type { Store } from '../store/engine/store.ts'
import { EXPIRED, type Moment } from './lease.ts'

/** A lease is valid for four times as long, so that a slow commit does not end it. */
const INTERVAL_MS = 500

export function startFence({ confirmCommit }: Pick<Store, 'confirmCommit'>, now: () => Moment) {
  let confirmed = EXPIRED
  let stopped = false

  async function confirm(): Promise<void> {
    const sentAt = now()
    await confirmCommit().then(
      () => {
        confirmed = sentAt
      },
      () => {},
    )
    if (!stopped) setTimeout(confirm, INTERVAL_MS).unref()
  }
  void confirm()

  return {
    /** When the last confirmed commit was sent: the database was the primary later than that. */
    confirmedAt: () => confirmed,
    stop() {
      stopped = true
    },
  }
}
