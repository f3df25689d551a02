// Is this key good, and whose is it? Answered from memory where that is safe: as long as revocations are heard.
import { hash as digest } from 'node:crypto'
import { type ControlPlane, ControlPlaneError, type Verdict } from './control-plane.ts'
import { followKeyChanges } from './key-changes.ts'

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

type Good = Extract<Verdict, { valid: true }>
interface Remembered {
  verdict: Good
  askedAt: number
}

const UNKNOWN: Verdict = { valid: false, reason: 'unknown' }
const REVOKED: Verdict = { valid: false, reason: 'revoked' }

export function startVerifier(controlPlane: ControlPlane, options: VerifierOptions = {}): Verifier {
  const { lossAfterMs = 10_000, askAgainAfterMs = 60_000, keysMax = 100_000, onNotice = () => {} } = options
  const good = new Map<string, Remembered>()
  /** Revocation is for good, and outweighs every answer, also one that a node gives which has not heard of it yet. */
  const revoked = new Set<string>()
  const asking = new Map<string, Promise<Verdict>>()
  /** Goes up when everything is forgotten: an answer to a question from before is not remembered. */
  let generation = 0
  let questions = 0

  function forget(): void {
    generation += 1
    good.clear()
    asking.clear()
  }

  function bury(hash: string): void {
    good.delete(hash)
    revoked.add(hash)
    dropOldest(revoked, keysMax)
  }

  const follower = followKeyChanges(controlPlane, {
    lossAfterMs,
    onNotice,
    onRevoked({ keyId, hash }) {
      bury(hash)
      options.onRevoked?.(keyId)
    },
    onReset() {
      forget()
      revoked.clear()
      options.onReset?.()
    },
    onRegained: forget,
  })

  async function ask(key: string, hash: string): Promise<Verdict> {
    if (questions >= ASKING_MAX)
      throw new ControlPlaneError(`${ASKING_MAX} keys are being verified at this moment. Try again shortly.`)
    questions += 1
    const asked = { at: performance.now(), generation, fresh: follower.isFresh() }
    try {
      const verdict = await controlPlane.verify(key)
      // Heard while the answer was under way.
      if (revoked.has(hash)) return REVOKED
      if (!verdict.valid) {
        good.delete(hash)
        if (verdict.reason === 'revoked') bury(hash)
      } else if (asked.fresh && follower.isFresh() && asked.generation === generation) {
        good.set(hash, { verdict, askedAt: asked.at })
        dropOldest(good, keysMax)
      }
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
      const known = good.get(hash)
      if (!known) return askTogether(key, hash)
      // To the end of the line: it is the one used last.
      good.delete(hash)
      good.set(hash, known)
      if (performance.now() - known.askedAt <= askAgainAfterMs) return known.verdict
      return askTogether(key, hash).catch((error: ControlPlaneError) => {
        // That the key is good is known as long as revocations are heard; only what else is known grows old.
        const still = follower.isFresh() && good.get(hash)
        if (!still || error.status === 401) throw error
        return still.verdict
      })
    },
    close: () => follower.stop(),
  }
}

function dropOldest(known: Map<string, unknown> | Set<string>, most: number): void {
  if (known.size <= most) return
  const [oldest] = known.keys()
  known.delete(oldest as string)
}
