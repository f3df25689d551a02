// The checker itself: a valid history has no violations, and each kind of violation is detected.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apis } from '../../../src/contract/apis.ts'
import { faults } from '../../../src/contract/faults.ts'
import { describe } from '../../../src/contract/openapi.ts'
import type { Document } from '../../support/api/openapi.ts'
import { check } from './check.ts'
import { type Attempt, type History, type Kind, operationOf } from './history.ts'

/** Without CORS headers, which the responses of these histories do not have. */
const documentOf = (api: typeof apis.publicA | typeof apis.edge) =>
  describe({ ...api, document: { ...api.document, crossOrigin: false } }, '') as unknown as Document

const documents = { publicA: documentOf(apis.publicA), edge: documentOf(apis.edge) }

const FIRST = 'tok_first'
const KEPT = 'tok_kept'
const GONE = 'tok_gone'

type Times = [startMs: number, endMs: number]

/** An attempt with the contract's example as its response, or another. */
function attempt(kind: Kind, [startMs, endMs]: Times, overrides: Partial<Attempt> = {}): Attempt {
  const { response } = operationOf(kind).operation
  const headers = { 'x-request-id': 'r', 'x-adit-workspace': 'acme', 'x-adit-key-id': 'k' }
  const body = kind === 'requests.authorize' ? undefined : response.example
  return {
    kind,
    node: 'a',
    startMs,
    endMs,
    keyId: FIRST,
    response: responseOf(response.status, body, headers),
    ...overrides,
  }
}

const responseOf = (
  status: number,
  json: unknown,
  headers: Record<string, string> = { 'x-request-id': 'r' },
) => ({
  status,
  json,
  text: json === undefined ? '' : JSON.stringify(json),
  headers: new Headers(headers),
})

const unauthorized = { response: responseOf(401, faults.unauthorized.example) }
const revoked = { response: responseOf(200, { valid: false, reason: 'revoked' }) }
const unavailable = { response: responseOf(503, faults.unavailable.example) }
const notFound = { response: responseOf(404, faults.not_found.example) }

const create = (id: string, times: Times, overrides: Partial<Attempt> = {}) =>
  attempt('tokens.create', times, {
    idempotencyKey: `for ${id}`,
    response: responseOf(201, {
      id,
      token: 'adit_x',
      label: `for ${id}`,
      createdAt: '2026-11-01T09:30:00.000Z',
    }),
    ...overrides,
  })

const revoke = (id: string, times: Times, overrides: Partial<Attempt> = {}) =>
  attempt('tokens.revoke', times, {
    revokes: id,
    response: responseOf(200, { id, revoked: true }),
    ...overrides,
  })

const verify = (keyId: string, times: Times, overrides: Partial<Attempt> = {}) =>
  attempt('keys.verify', times, { keyId, ...overrides })

/** One key is created and kept, another is created and revoked at 40; quiescent from 100 on. */
function validHistory(...more: Attempt[]): History {
  const sweep = ['a', 'b'].flatMap((node) => [
    verify(FIRST, [100, 101], { node }),
    verify(KEPT, [100, 101], { node }),
    verify(GONE, [100, 101], { node, ...revoked }),
  ])
  return {
    nodes: ['a', 'b'],
    initialKeyIds: [FIRST],
    archivable: new Map(),
    attempts: [create(KEPT, [0, 10]), create(GONE, [0, 10]), revoke(GONE, [30, 40]), ...more, ...sweep],
    injected: [{ kind: 'kill', node: 'b', startMs: 50, endMs: 60 }],
    quiescentMs: 100,
    listed: [
      { id: FIRST, label: 'first', revokedAt: null },
      { id: KEPT, label: `for ${KEPT}`, revokedAt: null },
      { id: GONE, label: `for ${GONE}`, revokedAt: '2026-11-01T09:30:00.000Z' },
    ],
    usage: { reported: { bytes: 7, events: 1 }, counted: { bytes: 7, events: 1 } },
    documents,
  }
}

const violatedRules = (history: History) => check(history).map(({ rule }) => rule)

test('a key must be rejected from its expiry on, and not long before', () => {
  const EXPIRING = 'tok_expiring'
  const EXPIRES_MS = 50_000
  const expired = { response: responseOf(200, { valid: false, reason: 'expired' }) }
  const withKey = (...probes: Attempt[]) => {
    const creation = create(EXPIRING, [1, 2], { kind: 'operator.create', expiresMs: EXPIRES_MS })
    const history = validHistory(creation, ...probes)
    history.listed.push({ id: EXPIRING, label: `for ${EXPIRING}`, revokedAt: null })
    for (const node of ['a', 'b']) history.attempts.push(verify(EXPIRING, [100, 101], { node }))
    return violatedRules(history)
  }
  assert.deepEqual(withKey(verify(EXPIRING, [EXPIRES_MS - 1, EXPIRES_MS + 9])), [])
  assert.deepEqual(withKey(verify(EXPIRING, [EXPIRES_MS - 900, EXPIRES_MS - 800], expired)), [])
  assert.deepEqual(withKey(verify(EXPIRING, [EXPIRES_MS + 1, EXPIRES_MS + 9])), ['stale accept'])
  assert.deepEqual(withKey(verify(EXPIRING, [EXPIRES_MS - 9_000, EXPIRES_MS - 8_000], expired)), [
    'valid key rejected',
  ])
})

test('keys must be rejected while their workspace is archived, and accepted otherwise', () => {
  const KEY = 'tok_archivable'
  const change = (kind: 'archive' | 'restore', [startMs, endMs]: Times, isAcknowledged = true): Attempt => ({
    kind: `operator.${kind}`,
    node: 'operator',
    startMs,
    endMs,
    workspace: 'other',
    response: isAcknowledged ? responseOf(200, undefined) : undefined,
  })
  const archived = { response: responseOf(200, { valid: false, reason: 'archived' }) }
  const withChanges = (...probes: Attempt[]) => {
    const changes = [
      change('archive', [20, 30]),
      change('restore', [60, 70], false),
      change('restore', [75, 80]),
    ]
    const history = validHistory(...changes, ...probes)
    for (const node of ['a', 'b']) history.attempts.push(verify(KEY, [100, 101], { node }))
    return violatedRules({ ...history, archivable: new Map([[KEY, 'other']]) })
  }
  const unauthorizedRead = attempt('workspace.read', [40, 50], { keyId: KEY, ...unauthorized })
  const valid = [
    verify(KEY, [10, 15]),
    verify(KEY, [15, 21], archived),
    verify(KEY, [29, 40]),
    verify(KEY, [40, 50], archived),
    unauthorizedRead,
    // The restore was not acknowledged.
    verify(KEY, [71, 72]),
    verify(KEY, [71, 72], archived),
    verify(KEY, [81, 82]),
  ]
  for (const probe of valid) assert.deepEqual(withChanges(probe), [])
  assert.deepEqual(withChanges(verify(KEY, [10, 15], archived)), ['valid key rejected'])
  assert.deepEqual(withChanges(verify(KEY, [31, 40])), ['stale accept'])
  assert.deepEqual(withChanges(attempt('tokens.list', [31, 59], { keyId: KEY })), ['stale accept'])
  assert.deepEqual(withChanges(verify(KEY, [81, 90], archived)), ['valid key rejected'])
})

test('a valid history has no violation, including everything that injected faults excuse', () => {
  const doubtful = 'tok_doubtful'
  const history = validHistory(
    // Started before the acknowledgement: both outcomes are correct.
    verify(GONE, [39, 45]),
    verify(GONE, [31, 35], revoked),
    verify(GONE, [41, 45], revoked),
    attempt('requests.authorize', [41, 45], { keyId: GONE, ...unauthorized }),
    attempt('workspace.read', [41, 45], { keyId: GONE, ...unavailable }),
    verify(KEPT, [50, 51], { node: 'b', response: undefined }),
    verify(KEPT, [62, 63], { response: undefined, abandoned: true }),
    // Not acknowledged, yet created.
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
    { id: 'tok_unacknowledged', label: 'for tok_unknown', revokedAt: null },
    { id: doubtful, label: `for ${doubtful}`, revokedAt: '2026-11-01T09:30:00.000Z' },
  )
  assert.deepEqual(check(history), [])
})

test('a key accepted after its revocation was acknowledged is a stale accept, on every operation', () => {
  for (const kind of ['keys.verify', 'requests.authorize', 'workspace.read', 'tokens.list'] as const)
    assert.deepEqual(violatedRules(validHistory(attempt(kind, [41, 2_000], { keyId: GONE, node: 'b' }))), [
      'stale accept',
    ])
  const created = create('tok_successor', [41, 42], { keyId: GONE })
  assert.ok(violatedRules(validHistory(created)).includes('stale accept'))
  // 404 to a client that retries after a lost response counts as an acknowledgement.
  const again = [
    revoke(KEPT, [50, 51], { response: undefined, abandoned: true }),
    revoke(KEPT, [52, 53], notFound),
  ]
  const history = validHistory(...again, verify(KEPT, [54, 55]))
  assert.ok(violatedRules(history).includes('stale accept'))
})

test('a key whose revocation was not requested must be accepted and listed', () => {
  const rejections = [
    verify(KEPT, [20, 21], revoked),
    verify(KEPT, [20, 21], { response: responseOf(200, { valid: false, reason: 'unknown' }) }),
    attempt('workspace.read', [20, 21], { keyId: KEPT, ...unauthorized }),
    // Rejected before its revocation was requested.
    verify(GONE, [20, 21], revoked),
  ]
  for (const rejection of rejections)
    assert.deepEqual(violatedRules(validHistory(rejection)), ['valid key rejected'])
  assert.ok(violatedRules(validHistory(revoke(KEPT, [50, 51], notFound))).includes('valid key rejected'))
})

test('an acknowledged key or revocation that is missing is lost', () => {
  const unlisted = validHistory()
  unlisted.listed = unlisted.listed.filter(({ id }) => id !== KEPT)
  const unrevoked = validHistory()
  unrevoked.listed = unrevoked.listed.map((key) => ({ ...key, revokedAt: null }))
  const invented = validHistory()
  invented.listed = invented.listed.map((key) => ({ ...key, revokedAt: '2026-11-01T09:30:00.000Z' }))
  const silent = validHistory()
  silent.attempts = silent.attempts.filter((one) => !(one.keyId === KEPT && one.node === 'b'))
  assert.deepEqual(violatedRules(unlisted), ['key lost'])
  assert.deepEqual(violatedRules(unrevoked), ['key lost'])
  assert.deepEqual(violatedRules(invented), ['key lost', 'key lost'])
  assert.deepEqual(violatedRules(silent), ['key lost'])
})

test('two keys for one Idempotency-Key are a duplicate, acknowledged or not', () => {
  const acknowledged = validHistory(create('tok_other', [20, 21], { idempotencyKey: `for ${KEPT}` }))
  assert.ok(violatedRules(acknowledged).includes('duplicate key'))
  const unacknowledged = validHistory(create('tok_x', [20, 21], { response: undefined, abandoned: true }))
  unacknowledged.listed.push({ id: 'tok_other', label: `for ${KEPT}`, revokedAt: null })
  assert.deepEqual(violatedRules(unacknowledged), ['duplicate key'])
  const unrequested = validHistory()
  unrequested.listed.push({ id: 'tok_other', label: 'out of nowhere', revokedAt: null })
  assert.ok(violatedRules(unrequested).every((rule) => rule === 'duplicate key'))
  assert.notDeepEqual(violatedRules(unrequested), [])
})

test('usage that is off by one is a violation', () => {
  for (const reported of [
    { bytes: 6, events: 1 },
    { bytes: 7, events: 2 },
  ])
    assert.deepEqual(
      violatedRules({ ...validHistory(), usage: { reported, counted: { bytes: 7, events: 1 } } }),
      ['wrong usage'],
    )
})

test('an undocumented response, or one that a valid request cannot get, is a violation', () => {
  for (const response of [
    responseOf(500, faults.internal.example),
    responseOf(400, faults.invalid_request.example),
    responseOf(418, {}),
    responseOf(503, { error: 'unavailable' }),
    responseOf(503, faults.unavailable.example, {}),
    responseOf(200, { slug: 'acme' }),
  ])
    assert.deepEqual(violatedRules(validHistory(attempt('workspace.read', [20, 21], { response }))), [
      'undocumented response',
    ])
  const rejected = attempt('usage.report', [20, 21], unauthorized)
  assert.ok(violatedRules(validHistory(rejected)).includes('undocumented response'))
})

test('a missing response is excused only by a fault of that node at that time', () => {
  const none = { response: undefined }
  for (const unexcused of [verify(KEPT, [50, 51], none), verify(KEPT, [70, 71], { node: 'b', ...none })])
    assert.deepEqual(violatedRules(validHistory(unexcused)), ['no response'])
})
