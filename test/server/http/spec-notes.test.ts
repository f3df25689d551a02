// What docs/spec-notes.md says about the public API, where the specification is silent.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { serve } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { pluck } from '../../support/pluck.ts'
import { root } from '../../support/processes/process.ts'

for (const engine of engines)
  test(`${engine}: what the specification leaves open is as docs/spec-notes.md says`, async (t) => {
    const { call, post } = await serve(t, { engine, env: { ADIT_KEYS_PER_WORKSPACE: '3' } })
    const usage = (await call('GET', '/usage?days=3')).json
    assert.equal(usage.lastSeen, null)
    const days = pluck(usage.series, 'day')
    assert.deepEqual(days, days.toSorted())
    assert.equal(days.length, 3)

    const bare = await call('POST', '/tokens')
    assert.deepEqual([bare.status, bare.json.label], [201, ''])
    const named = await post('/tokens', { label: 'b', unknown: 1 }, { 'idempotency-key': 'one' })
    assert.equal(named.status, 201)
    assert.equal((await post('/tokens', { label: 'c' }, { 'idempotency-key': 'one' })).status, 422)
    assert.deepEqual((await post('/tokens', { label: 'b' }, { 'idempotency-key': 'one' })).json, named.json)
    const full = await post('/tokens', {})
    assert.deepEqual([full.status, full.json.error], [400, 'invalid_request'])
    assert.equal((await post('/tokens', { expiresAt: '2030-01-01T00:00:00Z' })).status, 400)
    const { tokens } = (await call('GET', '/tokens?unknown=1')).json
    assert.deepEqual(pluck(tokens, 'id').slice(0, 2), [named.json.id, bare.json.id], 'newest first')
    assert.equal(tokens[0].lastUsedAt, null)

    for (const [method, path, status] of [
      ['GET', '/workspace/', 404],
      ['GET', '/WORKSPACE', 404],
      ['GET', '/%', 404],
      ['PUT', '/workspace', 404],
      ['GET', '/usage?days=2&days=2', 400],
      ['GET', '/usage?days=2e0', 400],
      ['HEAD', '/usage', 200],
      ['OPTIONS', '/nope', 204],
      ['GET', '/workspace?unknown=1', 200],
    ] as const)
      assert.equal((await call(method, path)).status, status, `${method} ${path}`)
  })

test('docs/spec-notes.md lists every path that is served and belongs to no API', () => {
  const notes = readFileSync(join(root, 'docs/spec-notes.md'), 'utf8')
  const sources = globSync('src/server/http/**/*.ts', { cwd: root }).map((file) =>
    readFileSync(join(root, file), 'utf8'),
  )
  const paths = sources.flatMap((text) =>
    [...text.matchAll(/(?:server\.get\(|\burl: |_PATH = |\bPATH = )'(\/[^']+)'/g)].map(
      ([, path = '']) => path,
    ),
  )
  assert.ok(paths.length > 8, `${paths}`)
  assert.deepEqual(
    paths.filter((path) => !notes.includes(`\`${path}\``)),
    [],
  )
})
