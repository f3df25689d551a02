// For ADIT_FENCING=strict: commits twice a second. A synchronous standby confirms the commit only if the
// database of this node is still the primary.
import { EXPIRED, type Moment } from '../../lib/credentials/lease.ts'
import type { Store } from '../store/engine/store.ts'

/** A quarter of a lease, so that one slow commit does not end it. */
const INTERVAL_MS = 500

export function startFence({ confirmCommit }: Pick<Store, 'confirmCommit'>, now: () => Moment) {
  let confirmedAt = EXPIRED
  let isStopped = false

  async function confirm(): Promise<void> {
    const sentAt = now()
    await confirmCommit().then(
      () => {
        confirmedAt = sentAt
      },
      // The lease expires unless a later attempt succeeds.
      () => {},
    )
    if (!isStopped) setTimeout(confirm, INTERVAL_MS).unref()
  }
  void confirm()

  return {
    /** When the last confirmed commit was sent. At that moment the database was the primary. */
    confirmedAt: () => confirmedAt,
    stop() {
      isStopped = true
    },
  }
}
