// Checks a history against the guarantees of Adit. A pure function of the history.

import {
  type Attempt,
  type History,
  isAcknowledged,
  type Outcome,
  outcomeOf,
  type Violation,
} from './history.ts'
import { invalidResponses } from './responses.ts'

/**
 * A node rejects a key before its expiry by at most as long as a poll takes, which is limited by its timeout.
 */
const EXPIRED_EARLY_MAX_MS = 4_000

const isCreation = ({ kind }: Attempt) => kind === 'tokens.create' || kind === 'operator.create'

export const check = (history: History): Violation[] => {
  const facts = factsOf(history)
  return [
    ...checkVerdicts(history),
    ...lostKeys(history, facts),
    ...duplicateKeys(history),
    ...wrongUsage(history),
    ...invalidResponses(history),
  ]
}

type Verdicts = Pick<History, 'attempts' | 'initialKeyIds' | 'archivable'>

/** Whether every key was accepted until its revocation or expiry and not afterwards. */
export function checkVerdicts(history: Verdicts): Violation[] {
  const facts = factsOf(history)
  return [
    ...staleAccepts(history, facts),
    ...rejectedValidKeys(history, facts),
    ...wrongWhileArchived(history),
  ]
}

interface Facts {
  /** Keys whose creation was acknowledged. */
  keyIds: Set<string>
  /** Start of the first revocation of a key: from then on both outcomes are correct, until … */
  requestedAt: Map<string, number>
  /** … it was acknowledged, or the key expired: from then on it must be rejected. */
  revokedAt: Map<string, number>
  expiring: Set<string>
}

function factsOf({ attempts, initialKeyIds }: Verdicts): Facts {
  const keyIds = new Set(initialKeyIds)
  const requestedAt = new Map<string, number>()
  const revokedAt = new Map<string, number>()
  const expiring = new Set<string>()
  // 404 counts too: a client that retries after a lost response takes it for the acknowledgement.
  const isRevoked = (attempt: Attempt) => isAcknowledged(attempt) || attempt.response?.status === 404
  const keepFirst = (times: Map<string, number>, id: string, ms: number) =>
    times.set(id, Math.min(ms, times.get(id) ?? Number.POSITIVE_INFINITY))
  for (const attempt of attempts) {
    const { revokes, response, startMs, endMs, expiresMs } = attempt
    if (isCreation(attempt) && isAcknowledged(attempt)) {
      const { id } = response?.json ?? {}
      keyIds.add(id)
      if (expiresMs !== undefined) {
        expiring.add(id)
        keepFirst(requestedAt, id, expiresMs - EXPIRED_EARLY_MAX_MS)
        keepFirst(revokedAt, id, expiresMs)
      }
    }
    if (revokes === undefined) continue
    keepFirst(requestedAt, revokes, startMs)
    if (isRevoked(attempt)) keepFirst(revokedAt, revokes, endMs)
  }
  return { keyIds, requestedAt, revokedAt, expiring }
}

/**
 * No request that starts after the acknowledgement of a revocation is accepted with that key, on any node.
 */
const staleAccepts = ({ attempts }: Verdicts, { revokedAt, expiring }: Facts): Violation[] =>
  attempts.flatMap((attempt) => {
    const { keyId = '', startMs, endMs } = attempt
    const revoked = revokedAt.get(keyId)
    if (revoked === undefined || startMs <= revoked || outcomeOf(attempt) !== 'accepted') return []
    const [late, took] = [startMs - revoked, endMs - startMs].map(Math.round)
    const end = expiring.has(keyId) ? 'expiry' : 'revocation'
    return violation('stale accept', attempt, `${keyId}, ${late} ms after its ${end}, in ${took} ms`)
  })

/** A created key is accepted immediately by all nodes, until its revocation is requested. */
const rejectedValidKeys = ({ attempts }: Verdicts, { keyIds, requestedAt }: Facts): Violation[] =>
  attempts.flatMap((attempt) => {
    const { keyId = '', revokes = '', endMs } = attempt
    if (
      keyIds.has(keyId) &&
      outcomeOf(attempt) === 'rejected' &&
      endMs < (requestedAt.get(keyId) ?? Infinity)
    )
      return violation('valid key rejected', attempt, keyId)
    // This attempt itself does not count as a request.
    const others = () =>
      attempts.some((other) => other !== attempt && other.revokes === revokes && other.startMs < endMs)
    if (keyIds.has(revokes) && attempt.response?.status === 404 && !others())
      return violation('valid key rejected', attempt, `${revokes} was not found`)
    return []
  })

/**
 * From the acknowledgement of an archiving on no node accepts the keys, and from that of a restore on all do.
 */
function wrongWhileArchived({ attempts, archivable }: Verdicts): Violation[] {
  const changes = Map.groupBy(
    attempts.filter(({ workspace }) => workspace !== undefined),
    ({ workspace }) => workspace,
  )
  return attempts.flatMap((attempt) => {
    const workspace = archivable.get(attempt.keyId ?? '')
    const outcome = outcomeOf(attempt)
    const expected = workspace && expectedByArchiving(changes.get(workspace) ?? [], attempt)
    if (!expected || !outcome || outcome === expected) return []
    const rule = outcome === 'accepted' ? 'stale accept' : 'valid key rejected'
    return violation(
      rule,
      attempt,
      `${attempt.keyId} of the workspace ${workspace}, which must be ${expected}`,
    )
  })
}

/** Undefined while the workspace changes, and after a change that was not acknowledged. */
function expectedByArchiving(changes: readonly Attempt[], { startMs, endMs }: Attempt): Outcome {
  const last = changes.findLast((change) => change.startMs < endMs)
  if (!last) return 'accepted'
  if (!isAcknowledged(last) || last.endMs >= startMs) return undefined
  return last.kind === 'operator.archive' ? 'rejected' : 'accepted'
}

/** At the end every acknowledged creation and revocation is in effect, on every node. */
function lostKeys(history: History, { keyIds, requestedAt, revokedAt }: Facts): Violation[] {
  const { attempts, listed, nodes, quiescentMs, archivable } = history
  const lost = (what: string): Violation => ({ rule: 'key lost', what })
  const listedById = new Map(listed.map((key) => [key.id, key]))
  const verified = new Set(
    attempts
      .filter((attempt) => attempt.startMs >= quiescentMs && outcomeOf(attempt))
      .map(({ keyId, node }) => `${keyId} ${node}`),
  )
  const unverified = (id: string) =>
    nodes
      .filter((node) => !verified.has(`${id} ${node}`))
      .map((node) => lost(`${node} gave no result on ${id} after the faults`))
  const lostInList = [...keyIds].flatMap((id) => {
    const key = listedById.get(id)
    if (!key) return lost(`${id} was acknowledged and is not in the list`)
    if ((revokedAt.get(id) ?? Infinity) < quiescentMs && key.revokedAt === null)
      return lost(`the revocation or expiry of ${id} is not in effect`)
    if (!requestedAt.has(id) && key.revokedAt !== null) return lost(`${id} was revoked without a request`)
    return unverified(id)
  })
  return [...lostInList, ...[...archivable.keys()].flatMap(unverified)]
}

/** One Idempotency-Key creates one key, however many requests are sent and responses lost. */
function duplicateKeys({ attempts, listed, initialKeyIds }: History): Violation[] {
  const duplicate = (what: string): Violation => ({ rule: 'duplicate key', what })
  const creations = attempts.filter(isCreation)
  const responses = Map.groupBy(creations.filter(isAcknowledged), ({ idempotencyKey }) => idempotencyKey)
  const requested = new Set(creations.map(({ idempotencyKey }) => idempotencyKey))
  const created = listed.filter(({ id }) => !initialKeyIds.includes(id))
  const byLabel = Map.groupBy(created, ({ label }) => label)
  return [
    ...[...responses]
      .filter(([, all]) => new Set(all.map(({ response }) => response?.text)).size > 1)
      .map(([idempotencyKey]) => duplicate(`${idempotencyKey} got different responses`)),
    ...[...byLabel]
      .filter(([label, keys]) => keys.length > 1 || !requested.has(label))
      .map(([label, keys]) => duplicate(`${keys.length} keys for ${label}`)),
    ...(created.length > requested.size
      ? [duplicate(`${created.length} keys for ${requested.size} Idempotency-Keys`)]
      : []),
  ]
}

function wrongUsage({ usage: { reported, counted } }: History): Violation[] {
  if (reported.bytes === counted.bytes && reported.events === counted.events) return []
  const what =
    `the server reports ${reported.bytes} bytes and ${reported.events} events, ` +
    `the edges counted ${counted.bytes} and ${counted.events}`
  return [{ rule: 'wrong usage', what }]
}

const violation = (rule: Violation['rule'], { kind, node }: Attempt, what: string): Violation[] => [
  { rule, what: `${kind} on ${node}: ${what}` },
]
