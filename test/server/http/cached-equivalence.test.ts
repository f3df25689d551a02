// Generated requests, each sent twice: as it is, and with an unknown expectation, which is ignored but keeps
// the request from the response cache. Both responses are the same.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { DAY_MS } from '../../../src/lib/time.ts'
import { createKey, revoke } from '../../../src/server/domain/keys/lifecycle.ts'
import { createWorkspace } from '../../../src/server/domain/workspaces/manage.ts'
import { addEdge, operator, serve } from '../../support/api/server.ts'
import { type KeptResponse, keepAliveClient, type RawRequest } from '../../support/network/keep-alive.ts'
import { readSource } from '../../support/network/response-source.ts'
import { pluck } from '../../support/pluck.ts'

const RUNS = 400

const PATHS = [
  '/api/v1/workspace',
  '/api/v1/workspace?',
  '/api/v1/workspace?x=1',
  '/api/v1/workspace/',
  '/api/v1/usage',
  '/api/v1/usage?days=365',
  '/api/v1/usage?days=7&days=8',
  '/api/v1/usage?days=366',
  '/api/v1/tokens',
  '/api/v1/tokens?limit=1',
  'http://adit/api/v1/workspace',
  '/edge/v1/keys/verify',
]

interface Secrets {
  keys: string[]
  edges: string[]
}

const ANY_HEADER: [string, string][] = [
  ['X-Request-Id', 'mine'],
  ['X-Request-Id', 'not "mine"'],
  ['traceparent', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'],
  ['Connection', 'keep-alive'],
  ['Connection', 'close'],
  ['Connection', 'Upgrade'],
  ['Upgrade', 'websocket'],
  ['If-None-Match', '*'],
  ['Origin', 'https://example.com'],
  ['Accept-Encoding', 'gzip'],
  ['X-Adit-Edge', 'x'],
]

/** Mostly ordinary requests, so that most are cache hits; the others differ in a detail or two. */
function requestsWith({ keys, edges }: Secrets): fc.Arbitrary<RawRequest> {
  const secret = fc.constantFrom(...keys, ...edges)
  const authorization = fc.oneof(
    { weight: 8, arbitrary: secret.map((token) => `Bearer ${token}`) },
    secret.map((token) => `bearer  ${token} `),
    secret.map((token) => `Bearer ${token}x`),
    fc.constantFrom('', 'Bearer', 'Basic eDp5', 'Bearer a b'),
  )
  const body = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...keys).map((key) => JSON.stringify({ key })) },
    fc.constantFrom(...keys).map((key) => `{ "key": "${key}" }`),
    fc.constantFrom('', '{}', '{"key":"adit_nonsense"}', '{"key":1}', 'é', `{"key":"${'x'.repeat(300)}"}`),
  )
  return fc
    .record({
      method: fc.oneof({ weight: 6, arbitrary: fc.constant(undefined) }, fc.constantFrom('HEAD', 'PUT')),
      path: fc.constantFrom(...PATHS),
      authorizations: fc.oneof(
        { weight: 10, arbitrary: fc.tuple(authorization) },
        fc.array(authorization, { maxLength: 2 }),
      ),
      more: fc.oneof(
        { weight: 3, arbitrary: fc.constant([]) },
        fc.array(fc.constantFrom(...ANY_HEADER), { maxLength: 2 }),
      ),
      type: fc.oneof(
        { weight: 4, arbitrary: fc.constant('application/json') },
        fc.constantFrom('application/json; charset=utf-8', 'text/plain'),
      ),
      body,
    })
    .map(({ method, path, authorizations, more, type, body }) => {
      const posts = path.startsWith('/edge/')
      return {
        method: method ?? (posts ? 'POST' : 'GET'),
        path,
        headers: [
          ...authorizations.map((value): [string, string] => ['Authorization', value]),
          ...more,
          ...(posts
            ? ([
                ['Content-Type', type],
                ['Content-Length', String(Buffer.byteLength(body))],
              ] satisfies [string, string][])
            : []),
        ],
        body: posts ? body : undefined,
      }
    })
}

const GENERATED_ID = /^[\w-]{8}-[0-9a-z]+$/

/** Without what differs between any two responses: lists of keys have the time of the last use. */
const stableContent = ({ status, headers, body }: KeptResponse, { path }: RawRequest) => ({
  status,
  headers: headers
    .filter(
      ([name]) => name !== 'Date' && !(path.includes('/tokens') && /^(etag|content-length)$/.test(name)),
    )
    .map(([name, value]) => `${name}: ${value.replace(GENERATED_ID, 'generated')}`)
    .sort(),
  body: body.replace(/"(expiresInMs|lastUsedAt)":("[^"]*"|\d+|null)/g, '"$1":0'),
})

test('a response from the cache equals the one without it, for generated requests', async (t) => {
  const now = Date.now()
  const server = await serve(t, { engine: 'sqlite', clock: () => now })
  const other = await createWorkspace(server.services, operator, { slug: 'other', name: 'Bücher 書 😀' })
  const createContext = ({ id }: { id: string }) => ({ ...server.services, actor: operator, workspaceId: id })
  const context = createContext(server.workspace)
  const revoked = await createKey(context, {})
  await revoke(context, revoked.id)
  const expiring = await createKey(context, { expiresAt: new Date(now + 20 * DAY_MS).toISOString() })
  const edge = await addEdge(server)
  const secrets = {
    keys: pluck([server.key, await createKey(createContext(other), {}), expiring, revoked], 'token'),
    edges: [edge.token],
  }
  const [cached, ordinary] = [keepAliveClient(t, server.url), keepAliveClient(t, server.url)]
  const fastify = readSource(await ordinary.send({ method: 'GET', path: '/api/v1/unknown', headers: [] }))
  let hits = 0
  const run = async (spec: RawRequest) => {
    const expected = await ordinary.send({ ...spec, headers: [...spec.headers, ['Expect', 'nothing']] })
    const actual = await cached.send(spec)
    assert.ok([fastify, 'mine'].includes(readSource(expected)))
    if (![fastify, 'mine'].includes(readSource(actual))) hits += 1
    assert.deepEqual(stableContent(actual, spec), stableContent(expected, spec))
  }
  await fc.assert(fc.asyncProperty(requestsWith(secrets), run), { numRuns: RUNS })
  assert.ok(hits > RUNS / 10, `${hits} of ${RUNS} responses were from the cache`)
})
