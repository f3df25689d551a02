// Is this key good, and whose is it? Answered from memory where that is safe: as long as revocations are heard.
import { hash as digest } from 'node:crypto'
import { type ControlPlane, ControlPlaneError, type Verdict } from './control-plane.ts'
import { followKeyChanges } from './key-changes.ts'
import { safeCallback } from './safe-callback.ts'

export interface Verifier {
  /** Throws a ControlPlaneError when nobody can tell: then nobody should be let in. */
  verify(key: string): Promise<Verdict>
  close(): void
}

export interface VerifierOptions {
  /** A key was revoked: whatever it has opened here is to be closed. */
  onRevoked?: (keyId: string) => void
  /** Revocations may have been missed for good: the keys of whatever is open are to be verified again. */
  onReset?: () => void
  /** A line for the log: that the control plane was lost, or is back. */
  onNotice?: (line: string) => void
  /** Everything is forgotten when revocations were not heard for that long. */
  lossAfterMs?: number
  /** What else is known of a key, such as its workspace's name, is never older. Asking also tells that it is in use. */
  askAgainAfterMs?: number
  /** How many keys are remembered at the most; those not used for longest are forgotten first. */
  keysMax?: number
}

const ASKING_MAX = 1_000
const KEY_CHARS_MAX = 200

interface Remembered {
  verdict: Verdict
  askedAt: number
}

const UNKNOWN: Verdict = { valid: false, reason: 'unknown' }
const REVOKED: Verdict = { valid: false, reason: 'revoked' }

export function startVerifier(controlPlane: ControlPlane, options: VerifierOptions = {}): Verifier {
  const { lossAfterMs = 10_000, askAgainAfterMs = 60_000, keysMax = 100_000 } = options
  const onRevoked = safeCallback(options.onRevoked)
  const onReset = safeCallback(options.onReset)
  const known = new Map<string, Remembered>()
  /** Heard, and for good: it outweighs every answer, also that of a node which has not heard of it yet. */
  const revoked = new Set<string>()
  /** How many of these had to be forgotten again: an answer from before one of those was may be about just that key. */
  let unheard = 0
  const asking = new Map<string, Promise<Verdict>>()
  /** Goes up when everything is forgotten: an answer to a question from before is not remembered. */
  let generation = 0
  let questions = 0

  function forget(): void {
    generation += 1
    known.clear()
    asking.clear()
  }

  function remember(hash: string, verdict: Verdict, askedAt: number): void {
    known.set(hash, { verdict, askedAt })
    dropOldest(known, keysMax)
  }

  const follower = followKeyChanges(controlPlane, {
    lossAfterMs,
    onNotice: safeCallback(options.onNotice),
    onRevoked({ keyId, hash }) {
      known.delete(hash)
      revoked.add(hash)
      if (dropOldest(revoked, keysMax)) unheard += 1
      onRevoked(keyId)
    },
    onReset() {
      forget()
      onReset()
    },
    onRegained: forget,
  })

  async function ask(key: string, hash: string): Promise<Verdict> {
    if (questions >= ASKING_MAX)
      throw new ControlPlaneError(`${ASKING_MAX} keys are being verified at this moment. Try again shortly.`)
    questions += 1
    const asked = { at: performance.now(), generation, unheard, fresh: follower.isFresh() }
    try {
      const verdict = await controlPlane.verify(key)
      // Heard while the answer was under way.
      if (revoked.has(hash)) return REVOKED
      if (asked.unheard !== unheard)
        throw new ControlPlaneError('Too many keys are being revoked at this moment. Try again shortly.')
      known.delete(hash)
      const isSafe = asked.fresh && follower.isFresh() && asked.generation === generation
      // Not unknown ones: anybody can make those up.
      if (isSafe && (verdict.valid || verdict.reason === 'revoked')) remember(hash, verdict, asked.at)
      return verdict
    } finally {
      questions -= 1
    }
  }

  /** One question for all who want to know the same at the same time. */
  function askTogether(key: string, hash: string): Promise<Verdict> {
    const underWay = asking.get(hash)
    if (underWay) return underWay
    const answer = ask(key, hash).finally(() => {
      if (asking.get(hash) === answer) asking.delete(hash)
    })
    asking.set(hash, answer)
    return answer
  }

  return {
    async verify(key) {
      if (key.length > KEY_CHARS_MAX) return UNKNOWN
      const hash = digest('sha256', key, 'hex')
      if (revoked.has(hash)) return REVOKED
      if (!follower.isFresh()) {
        forget()
        return ask(key, hash)
      }
      const found = known.get(hash)
      if (!found) return askTogether(key, hash)
      // To the end of the line: it is the one used last.
      known.delete(hash)
      known.set(hash, found)
      if (performance.now() - found.askedAt <= askAgainAfterMs) return found.verdict
      return askTogether(key, hash).catch((error: ControlPlaneError) => {
        // That the key is good is known as long as revocations are heard; only what else is known grows old.
        const still = follower.isFresh() && known.get(hash)
        if (!still || error.status === 401) throw error
        return still.verdict
      })
    },
    close: () => follower.stop(),
  }
}

/** Whether there was one too many. */
function dropOldest(all: Map<string, unknown> | Set<string>, most: number): boolean {
  if (all.size <= most) return false
  const [oldest] = all.keys()
  return all.delete(oldest as string)
}
