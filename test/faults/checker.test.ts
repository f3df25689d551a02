// The checker itself: a sound history has no violation, and each way to be wrong is seen as what it is.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { edgeOperations } from '../../src/contract/edge.ts'
import { faults } from '../../src/contract/faults.ts'
import { describe } from '../../src/contract/openapi.ts'
import type { Operation } from '../../src/contract/operation.ts'
import { variants } from '../../src/contract/variants.ts'
import type { Document } from '../support/openapi.ts'
import { check } from './checker.ts'
import { type Attempt, type History, type Kind, operationOf } from './history.ts'

const documentOf = (operations: readonly Operation[]) =>
  describe({
    title: 'Adit',
    version: '1',
    description: '',
    serverUrl: '',
    operations,
    credential: '',
    crossOrigin: false,
    groups: {},
  }) as unknown as Document

const documents = { public: documentOf(variants.A), edge: documentOf(edgeOperations) }

const FIRST = 'tok_first'
const KEPT = 'tok_kept'
const GONE = 'tok_gone'

type Times = [startMs: number, endMs: number]

/** An attempt that was answered as the contract's own example is, or as given. */
function attempt(kind: Kind, [startMs, endMs]: Times, given: Partial<Attempt> = {}): Attempt {
  const { response } = operationOf(kind).operation
  const headers = { 'x-request-id': 'r', 'x-adit-workspace': 'acme', 'x-adit-key-id': 'k' }
  const body = kind === 'visitors.authorize' ? undefined : response.example
  return {
    kind,
    node: 'a',
    startMs,
    endMs,
    keyId: FIRST,
    answer: answered(response.status, body, headers),
    ...given,
  }
}

const answered = (
  status: number,
  json: unknown,
  headers: Record<string, string> = { 'x-request-id': 'r' },
) => ({
  status,
  json,
  text: json === undefined ? '' : JSON.stringify(json),
  headers: new Headers(headers),
})

const refused = { answer: answered(401, faults.unauthorized.example) }
const revoked = { answer: answered(200, { valid: false, reason: 'revoked' }) }
const unavailable = { answer: answered(503, faults.unavailable.example) }
const notFound = { answer: answered(404, faults.not_found.example) }

const create = (id: string, times: Times, given: Partial<Attempt> = {}) =>
  attempt('tokens.create', times, {
    idempotencyKey: `for ${id}`,
    answer: answered(201, { id, token: 'adit_x', label: `for ${id}`, createdAt: '2026-11-01T09:30:00.000Z' }),
    ...given,
  })

const revoke = (id: string, times: Times, given: Partial<Attempt> = {}) =>
  attempt('tokens.revoke', times, { revokes: id, answer: answered(200, { id, revoked: true }), ...given })

const verify = (keyId: string, times: Times, given: Partial<Attempt> = {}) =>
  attempt('keys.verify', times, { keyId, ...given })

/** One key is made and kept, another is made and revoked at 40, and nobody does anything from 100 on. */
function soundHistory(...more: Attempt[]): History {
  const sweep = ['a', 'b'].flatMap((node) => [
    verify(FIRST, [100, 101], { node }),
    verify(KEPT, [100, 101], { node }),
    verify(GONE, [100, 101], { node, ...revoked }),
  ])
  return {
    nodes: ['a', 'b'],
    initialKeyIds: [FIRST],
    attempts: [create(KEPT, [0, 10]), create(GONE, [0, 10]), revoke(GONE, [30, 40]), ...more, ...sweep],
    troubles: [{ kind: 'kill', node: 'b', startMs: 50, endMs: 60 }],
    quietMs: 100,
    listed: [
      { id: FIRST, label: 'first', revokedAt: null },
      { id: KEPT, label: `for ${KEPT}`, revokedAt: null },
      { id: GONE, label: `for ${GONE}`, revokedAt: '2026-11-01T09:30:00.000Z' },
    ],
    usage: { told: { bytes: 7, events: 1 }, counted: { bytes: 7, events: 1 } },
    documents,
  }
}

const rulesBroken = (history: History) => check(history).map(({ rule }) => rule)

test('a sound history has no violation, with all that troubles excuse', () => {
  const doubtful = 'tok_doubtful'
  const history = soundHistory(
    // Begun before the acknowledgement, so either answer is right.
    verify(GONE, [39, 45]),
    verify(GONE, [31, 35], revoked),
    verify(GONE, [41, 45], revoked),
    attempt('visitors.authorize', [41, 45], { keyId: GONE, ...refused }),
    attempt('workspace.read', [41, 45], { keyId: GONE, ...unavailable }),
    verify(KEPT, [50, 51], { node: 'b', answer: undefined }),
    verify(KEPT, [62, 63], { answer: undefined, impatient: true }),
    // Never acknowledged, and yet made.
    create('tok_unknown', [20, 30], unavailable),
    create(doubtful, [20, 21]),
    create(doubtful, [22, 23]),
    revoke(doubtful, [50, 51], unavailable),
    verify(doubtful, [52, 53]),
    verify(doubtful, [54, 55], revoked),
    revoke(doubtful, [56, 57], notFound),
    verify(doubtful, [100, 101], { node: 'a', ...revoked }),
    verify(doubtful, [100, 101], { node: 'b', ...revoked }),
  )
  history.listed.push(
    { id: 'tok_unheard_of', label: 'for tok_unknown', revokedAt: null },
    { id: doubtful, label: `for ${doubtful}`, revokedAt: '2026-11-01T09:30:00.000Z' },
  )
  assert.deepEqual(check(history), [])
})

test('a key that is accepted after its revocation was acknowledged is a stale accept, however it is presented', () => {
  for (const kind of ['keys.verify', 'visitors.authorize', 'workspace.read', 'tokens.list'] as const)
    assert.deepEqual(rulesBroken(soundHistory(attempt(kind, [41, 2_000], { keyId: GONE, node: 'b' }))), [
      'stale accept',
    ])
  const made = create('tok_successor', [41, 42], { keyId: GONE })
  assert.ok(rulesBroken(soundHistory(made)).includes('stale accept'))
  // Told that there is nothing left to revoke, as whoever asks again after a lost answer.
  const again = [
    revoke(KEPT, [50, 51], { answer: undefined, impatient: true }),
    revoke(KEPT, [52, 53], notFound),
  ]
  const history = soundHistory(...again, verify(KEPT, [54, 55]))
  assert.ok(rulesBroken(history).includes('stale accept'))
})

test('a key that nobody wanted revoked must be taken for good, and be there', () => {
  const refusals = [
    verify(KEPT, [20, 21], revoked),
    verify(KEPT, [20, 21], { answer: answered(200, { valid: false, reason: 'unknown' }) }),
    attempt('workspace.read', [20, 21], { keyId: KEPT, ...refused }),
    // Refused before anybody asked for its revocation.
    verify(GONE, [20, 21], revoked),
  ]
  for (const refusal of refusals) assert.deepEqual(rulesBroken(soundHistory(refusal)), ['good key refused'])
  assert.ok(rulesBroken(soundHistory(revoke(KEPT, [50, 51], notFound))).includes('good key refused'))
})

test('a key or a revocation that was acknowledged and is gone is lost', () => {
  const unlisted = soundHistory()
  unlisted.listed = unlisted.listed.filter(({ id }) => id !== KEPT)
  const forgotten = soundHistory()
  forgotten.listed = forgotten.listed.map((key) => ({ ...key, revokedAt: null }))
  const invented = soundHistory()
  invented.listed = invented.listed.map((key) => ({ ...key, revokedAt: '2026-11-01T09:30:00.000Z' }))
  const silent = soundHistory()
  silent.attempts = silent.attempts.filter((one) => !(one.keyId === KEPT && one.node === 'b'))
  assert.deepEqual(rulesBroken(unlisted), ['key lost'])
  assert.deepEqual(rulesBroken(forgotten), ['key lost'])
  assert.deepEqual(rulesBroken(invented), ['key lost', 'key lost'])
  assert.deepEqual(rulesBroken(silent), ['key lost'])
})

test('two keys for one Idempotency-Key are one too many, told or not', () => {
  const told = soundHistory(create('tok_other', [20, 21], { idempotencyKey: `for ${KEPT}` }))
  assert.ok(rulesBroken(told).includes('key doubled'))
  const untold = soundHistory(create('tok_x', [20, 21], { answer: undefined, impatient: true }))
  untold.listed.push({ id: 'tok_other', label: `for ${KEPT}`, revokedAt: null })
  assert.deepEqual(rulesBroken(untold), ['key doubled'])
  const unasked = soundHistory()
  unasked.listed.push({ id: 'tok_other', label: 'out of nowhere', revokedAt: null })
  assert.ok(rulesBroken(unasked).every((rule) => rule === 'key doubled'))
  assert.notDeepEqual(rulesBroken(unasked), [])
})

test('usage that is off by one is wrong', () => {
  for (const told of [
    { bytes: 6, events: 1 },
    { bytes: 7, events: 2 },
  ])
    assert.deepEqual(rulesBroken({ ...soundHistory(), usage: { told, counted: { bytes: 7, events: 1 } } }), [
      'usage wrong',
    ])
})

test('an answer that is not documented, or that a sound request cannot get, is wrong', () => {
  for (const answer of [
    answered(500, faults.internal.example),
    answered(400, faults.invalid_request.example),
    answered(418, {}),
    answered(503, { error: 'unavailable' }),
    answered(503, faults.unavailable.example, {}),
    answered(200, { slug: 'acme' }),
  ])
    assert.deepEqual(rulesBroken(soundHistory(attempt('workspace.read', [20, 21], { answer }))), [
      'answer not documented',
    ])
  const turnedAway = attempt('usage.report', [20, 21], refused)
  assert.ok(rulesBroken(soundHistory(turnedAway)).includes('answer not documented'))
})

test('no answer is excused by what was done to that very node at that time, and by nothing else', () => {
  const none = { answer: undefined }
  for (const unexcused of [verify(KEPT, [50, 51], none), verify(KEPT, [70, 71], { node: 'b', ...none })])
    assert.deepEqual(rulesBroken(soundHistory(unexcused)), ['no answer'])
})
