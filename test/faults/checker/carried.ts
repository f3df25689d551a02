// Checks what visitors of tunnels received: after the response to the revocation of a key, no edge carries a
// byte for it.
import type { Violation } from './history.ts'

/** What a visitor received through a tunnel. */
export interface Carried {
  readonly keyId: string
  readonly edge: string
  readonly what: 'request' | 'download' | 'websocket'
  /**
   * A request: when it was sent. Otherwise: when the local server created the bytes, or the visitor sent
   * them. An edge that has them later cannot have ended the traffic of the key.
   */
  readonly sentMs: number
  readonly receivedMs: number
}

/**
 * How long bytes that an edge had passed on before the response may take: to the visitor, and until this
 * process, which runs all visitors, reads them.
 */
const DELIVERY_MAX_MS = 1_500

export const carriedAfterRevocation = (
  carried: readonly Carried[],
  revokedAt: ReadonlyMap<string, number>,
): Violation[] =>
  carried.flatMap(({ keyId, edge, what, sentMs, receivedMs }) => {
    const revoked = revokedAt.get(keyId)
    if (revoked === undefined) return []
    if (sentMs <= revoked && receivedMs <= revoked + DELIVERY_MAX_MS) return []
    const [sent, received] = [sentMs - revoked, receivedMs - revoked].map(Math.round)
    return [
      {
        rule: 'carried after revocation' as const,
        what: `${what} at ${edge} with ${keyId}: sent ${sent} ms and received ${received} ms after the response`,
      },
    ]
  })
