// The session of an edge: one of its runs, and the lease under which its tunnels count.
import { TRAFFIC_LEASE_S, TUNNEL_LEASE_S } from '../../../contract/edge/tunnels.ts'
import { MINUTE_MS } from '../../../lib/time.ts'
import type { Tx } from '../../store/engine/store.ts'
import { type LockedSession, lockSession, replaceSession } from '../../store/tunnels/edge-sessions.ts'
import type { TunnelChanges } from '../cluster/tunnel-changes.ts'

export const LEASE_MS = TUNNEL_LEASE_S * 1_000
export const TRAFFIC_LEASE_MS = TRAFFIC_LEASE_S * 1_000

/**
 * The new session of an edge whose clock was set back sorts before its last one. It is accepted this long
 * after the last lease has expired, because no delayed request of an earlier session can arrive by then.
 */
const OLDER_AFTER_MS = 2 * MINUTE_MS

export const isLive = ({ lease_until, now }: LockedSession): boolean => lease_until > now

/** Locks the session, and starts it if it is new. Undefined if a later one exists. */
export async function enterSession(
  tx: Tx,
  changes: TunnelChanges,
  edgeId: string,
  session: string,
): Promise<LockedSession | undefined> {
  const stored = await lockSession(tx, edgeId)
  if (stored.session === session) return stored
  const { now, lease_until } = stored
  if (stored.session > session && now < lease_until + OLDER_AFTER_MS) return undefined
  changes.closed.push(...(await replaceSession(tx, edgeId, session, LEASE_MS)))
  return { session, sequence: 0, now, lease_until: now + LEASE_MS }
}
