// Holds a history against what Adit promises. A pure function: the same history has the same violations.
import { wrongAnswers } from './answers.ts'
import { type Attempt, type History, isAcknowledged, type Violation, verdictOf } from './history.ts'

export const check = (history: History): Violation[] => {
  const facts = factsOf(history)
  return [
    ...staleAccepts(history, facts),
    ...refusedGoodKeys(history, facts),
    ...lostKeys(history, facts),
    ...doubledKeys(history),
    ...wrongUsage(history),
    ...wrongAnswers(history),
  ]
}

interface Facts {
  /** Those that are sure to have been made. */
  keyIds: Set<string>
  /** When the first revocation of a key was asked for: from then on both outcomes are right, until … */
  askedAt: Map<string, number>
  /** … this one was acknowledged: from then on only one is. */
  revokedAt: Map<string, number>
}

function factsOf({ attempts, initialKeyIds }: History): Facts {
  const keyIds = new Set(initialKeyIds)
  const askedAt = new Map<string, number>()
  const revokedAt = new Map<string, number>()
  // Whoever is told that there is nothing left to revoke may be asking again after a lost answer, and takes this one for it.
  const isOver = (attempt: Attempt) => isAcknowledged(attempt) || attempt.answer?.status === 404
  const keepFirst = (times: Map<string, number>, id: string, ms: number) =>
    times.set(id, Math.min(ms, times.get(id) ?? Number.POSITIVE_INFINITY))
  for (const attempt of attempts) {
    const { kind, revokes, answer, startMs, endMs } = attempt
    if (kind === 'tokens.create' && isAcknowledged(attempt)) keyIds.add(answer?.json.id)
    if (revokes === undefined) continue
    keepFirst(askedAt, revokes, startMs)
    if (isOver(attempt)) keepFirst(revokedAt, revokes, endMs)
  }
  return { keyIds, askedAt, revokedAt }
}

/** Once a revocation is acknowledged, no request that starts afterwards is accepted with that key, on any node. */
const staleAccepts = ({ attempts }: History, { revokedAt }: Facts): Violation[] =>
  attempts.flatMap((attempt) => {
    const { keyId = '', startMs, endMs } = attempt
    const revoked = revokedAt.get(keyId)
    if (revoked === undefined || startMs <= revoked || verdictOf(attempt) !== 'accepted') return []
    const [late, took] = [startMs - revoked, endMs - startMs].map(Math.round)
    return violation('stale accept', attempt, `${keyId}, ${late} ms after its revocation, in ${took} ms`)
  })

/** A key that was handed out works at once and everywhere, until somebody wants it revoked. */
const refusedGoodKeys = ({ attempts }: History, { keyIds, askedAt }: Facts): Violation[] =>
  attempts.flatMap((attempt) => {
    const { keyId = '', revokes = '', endMs } = attempt
    if (keyIds.has(keyId) && verdictOf(attempt) === 'refused' && endMs < (askedAt.get(keyId) ?? Infinity))
      return violation('good key refused', attempt, keyId)
    // This attempt itself is one that asked.
    const others = () =>
      attempts.some((other) => other !== attempt && other.revokes === revokes && other.startMs < endMs)
    if (keyIds.has(revokes) && attempt.answer?.status === 404 && !others())
      return violation('good key refused', attempt, `${revokes} was not found`)
    return []
  })

/** At the end everything that was acknowledged is there, and shown to be so by every node. */
function lostKeys(history: History, { keyIds, askedAt, revokedAt }: Facts): Violation[] {
  const { attempts, listed, nodes, quietMs } = history
  const lost = (what: string): Violation => ({ rule: 'key lost', what })
  const listedById = new Map(listed.map((key) => [key.id, key]))
  const judged = new Set(
    attempts
      .filter((attempt) => attempt.startMs >= quietMs && verdictOf(attempt))
      .map(({ keyId, node }) => `${keyId} ${node}`),
  )
  return [...keyIds].flatMap((id) => {
    const key = listedById.get(id)
    if (!key) return lost(`${id} was acknowledged and is not in the list`)
    if (revokedAt.has(id) && key.revokedAt === null) return lost(`the revocation of ${id} was acknowledged`)
    if (!askedAt.has(id) && key.revokedAt !== null) return lost(`nobody asked for the revocation of ${id}`)
    return nodes
      .filter((node) => !judged.has(`${id} ${node}`))
      .map((node) => lost(`${node} had nothing to say about ${id} when all was quiet`))
  })
}

/** One Idempotency-Key is one key, however often it was sent, and however many of the answers were lost. */
function doubledKeys({ attempts, listed, initialKeyIds }: History): Violation[] {
  const doubled = (what: string): Violation => ({ rule: 'key doubled', what })
  const creations = attempts.filter(({ kind }) => kind === 'tokens.create')
  const answers = Map.groupBy(creations.filter(isAcknowledged), ({ idempotencyKey }) => idempotencyKey)
  const asked = new Set(creations.map(({ idempotencyKey }) => idempotencyKey))
  const made = listed.filter(({ id }) => !initialKeyIds.includes(id))
  const byLabel = Map.groupBy(made, ({ label }) => label)
  return [
    ...[...answers]
      .filter(([, all]) => new Set(all.map(({ answer }) => answer?.text)).size > 1)
      .map(([idempotencyKey]) => doubled(`${idempotencyKey} was answered in more than one way`)),
    ...[...byLabel]
      .filter(([label, keys]) => keys.length > 1 || !asked.has(label))
      .map(([label, keys]) => doubled(`${keys.length} keys for ${label}`)),
    ...(made.length > asked.size ? [doubled(`${made.length} keys of ${asked.size} Idempotency-Keys`)] : []),
  ]
}

function wrongUsage({ usage: { told, counted } }: History): Violation[] {
  if (told.bytes === counted.bytes && told.events === counted.events) return []
  const what = `${told.bytes} bytes and ${told.events} events are told of ${counted.bytes} and ${counted.events}`
  return [{ rule: 'usage wrong', what }]
}

const violation = (rule: Violation['rule'], { kind, node }: Attempt, what: string): Violation[] => [
  { rule, what: `${kind} on ${node}: ${what}` },
]
