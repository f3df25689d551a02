// Secrets with which two edges of a group authenticate each other: derived for each pair and hour from the
// secret that all nodes share, and not stored.
import { createHmac, createSecretKey, hkdfSync } from 'node:crypto'
import { HOUR_MS } from '../../../lib/time.ts'

/**
 * The secrets of a pair of edges at a time by the clock of the database: of this hour, the last and the next
 * one. So two edges that have got them within an hour of each other have one in common.
 */
export type PeerSecrets = (group: string, pair: readonly [string, string], now: number) => string[]

/** `serverSecret` is ADIT_SECRET. */
export function createPeerSecrets(serverSecret: string): PeerSecrets {
  const key = createSecretKey(new Uint8Array(hkdfSync('sha256', serverSecret, '', 'adit edge peers', 32)))
  return (group, pair, now) => {
    const hour = Math.floor(now / HOUR_MS)
    const ids = pair.toSorted().join(' ')
    return [hour, hour - 1, hour + 1].map((each) =>
      createHmac('sha256', key).update(`${group} ${ids} ${each}`).digest('base64url'),
    )
  }
}
