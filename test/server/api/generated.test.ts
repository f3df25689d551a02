// Generated requests to every operation: each response is one that the OpenAPI document describes for that
// operation, and never 5xx.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Api, apis } from '../../../src/contract/apis.ts'
import { createResponseValidator } from '../../support/api/openapi.ts'
import { addWorkspace, caller, serve } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'

const RUNS = 800

const text = fc.oneof(
  fc.string({ maxLength: 120 }),
  fc.string({ unit: 'binary', maxLength: 120 }),
  fc.constantFrom(
    '',
    '0',
    '-1',
    '1e9',
    'null',
    '\u0000',
    '\ud800',
    '😀'.repeat(81),
    "' or 1=1 --",
    '../..',
    '%00',
  ),
)
const number = fc.oneof(fc.integer(), fc.double(), fc.bigInt().map(String), fc.integer({ min: 1, max: 365 }))
const query = fc.array(
  fc.tuple(fc.constantFrom('days', 'limit', 'cursor', 'name', 'x', '__proto__'), fc.oneof(text, number)),
  {
    maxLength: 4,
  },
)
const body = fc.oneof(
  { weight: 3, arbitrary: fc.record({ label: fc.oneof(text, fc.jsonValue()) }, { requiredKeys: [] }) },
  { weight: 2, arbitrary: fc.jsonValue() },
)
const rawBody = fc.oneof(
  { weight: 4, arbitrary: body.map((value) => JSON.stringify(value)) },
  { weight: 1, arbitrary: fc.string({ maxLength: 200 }) },
  { weight: 1, arbitrary: fc.constant(undefined) },
)
const contentType = fc.constantFrom(
  'application/json',
  'application/json; charset=utf-8',
  'text/plain',
  'a/b',
  ';',
  '',
)
const headerText = fc.stringMatching(/^[\x20-\x7e]{0,300}$/)
const request = fc.record({
  id: text,
  /** Sometimes an id that exists. */
  known: fc.boolean(),
  query,
  body: rawBody,
  contentType,
  idempotencyKey: fc.option(headerText, { nil: undefined }),
  ifNoneMatch: fc.option(headerText, { nil: undefined }),
  presented: fc.constantFrom('valid', 'valid', 'valid', 'other', 'none', 'nonsense'),
})

/** Accepted by every operation; a revocation is of a key that was created before. */
const ordinary: typeof request extends fc.Arbitrary<infer Request> ? Request : never = {
  id: 'tok_none',
  known: true,
  query: [],
  body: undefined,
  contentType: 'application/json',
  idempotencyKey: undefined,
  ifNoneMatch: undefined,
  presented: 'valid',
}

for (const engine of engines)
  for (const variant of ['A', 'B'] as const)
    test(`${engine}: variant ${variant}: generated requests get only documented responses`, async (t) => {
      const server = await serve(t, { engine, env: { ADIT_API_VARIANT: variant } })
      const other = await addWorkspace(server, 'other')
      const keys = { valid: server.key.token, other: other.key.token, none: null, nonsense: 'adit_nonsense' }
      const created: string[] = []
      const seen = new Set<string>()
      const served: Api[] = [apis[`public${variant}`], apis.workspace]
      const targets = await Promise.all(
        served.map(async ({ prefix, operations }) => {
          const call = caller(server.url + prefix, server.key.token)
          const validateResponse = createResponseValidator((await call('GET', '/openapi.json')).json)
          return operations.map(({ method, path }) => ({ method, path, call, validateResponse }))
        }),
      )

      await fc.assert(
        fc.asyncProperty(fc.constantFrom(...targets.flat()), request, async (target, given) => {
          const { method, path, call, validateResponse } = target
          const deletes = method === 'DELETE' && given.known && given.presented === 'valid'
          const known = deletes ? created.pop() : undefined
          const id = known ?? (encodeURIComponent(given.id.toWellFormed().slice(0, 60)) || 'x')
          // The client would resolve these before they are sent.
          fc.pre(!/^(\.|%2e){1,2}$/i.test(id))
          const search = given.query.map(
            ([name, value]) => `${name}=${encodeURIComponent(`${value}`.toWellFormed())}`,
          )
          const response = await call(method, `${path.replace('{id}', id)}?${search.join('&')}`, {
            key: keys[given.presented],
            ...(method === 'GET' || given.body === undefined ? {} : { body: given.body.toWellFormed() }),
            headers: {
              'content-type': given.contentType,
              ...(given.idempotencyKey !== undefined && { 'idempotency-key': given.idempotencyKey }),
              ...(given.ifNoneMatch !== undefined && { 'if-none-match': given.ifNoneMatch }),
            },
          })
          assert.ok(response.status < 500, `${method} ${path} → ${response.status}`)
          validateResponse(path, method, response)
          if (response.status === 201 && given.presented === 'valid') created.push(response.json.id)
          seen.add(`${method} ${path} ${response.status}`)
        }),
        { numRuns: RUNS, examples: targets.flat().map((each) => [each, ordinary]) },
      )
      // A generator that only produces rejected requests would prove little.
      const expected = [
        'GET /workspace 200',
        'GET /workspace 401',
        'GET /tokens 200',
        'GET /tokens 400',
        'GET /usage 400',
        'GET /tunnels 200',
        'GET /tunnels 400',
        'GET /tunnels/{id} 404',
        'GET /names 200',
        'GET /edges 200',
        `DELETE /tunnels/{id} ${variant === 'A' ? 404 : 403}`,
      ]
      const writing = [
        'POST /tokens 201',
        'POST /tokens 400',
        'DELETE /tokens/{id} 200',
        'DELETE /tokens/{id} 404',
      ]
      for (const outcome of [...expected, ...(variant === 'A' ? writing : [])])
        assert.ok(seen.has(outcome), `${outcome} was never seen: ${[...seen]}`)
    })
