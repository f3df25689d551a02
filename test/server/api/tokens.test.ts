import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { hashSecret, isSecret } from '../../../src/lib/credentials/secret.ts'
import { addWorkspace, rename, serve, type TestServer } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { readRows } from '../../support/databases/rows.ts'
import { pluck } from '../../support/pluck.ts'
import { until } from '../../support/until.ts'

const KEY_ID = /^tok_[0-9a-z]{26}$/
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const readAudit = ({ services }: TestServer, subjectId: string) =>
  readRows(services, 'audit_log', { target_id: subjectId })

const keyRow = async ({ services }: TestServer, id: string) =>
  (await readRows(services, 'api_keys', { id }))[0]

for (const engine of engines) {
  /** For tests that leave its key alone, and do not depend on other keys. */
  const server = await serve({ after }, { engine })

  test(`${engine}: a created key is 201 with its secret, and works immediately`, async () => {
    const { status, json, headers } = await server.post('/tokens', { label: 'ci' })
    assert.equal(status, 201)
    assert.deepEqual(Object.keys(json).sort(), ['createdAt', 'id', 'label', 'token'])
    assert.match(json.id, KEY_ID)
    assert.match(json.createdAt, INSTANT)
    assert.equal(json.label, 'ci')
    assert.ok(isSecret('key', json.token))
    assert.equal(headers.get('cache-control'), 'no-store')
    assert.equal((await server.call('GET', '/workspace', { key: json.token })).json.slug, 'acme')
  })

  test(`${engine}: the list shows metadata of every key, newest first, and never a secret`, async (t) => {
    const server = await serve(t, { engine })
    const created = []
    for (let index = 0; index < 5; index++)
      created.push((await server.post('/tokens', { label: `k${index}` })).json)
    const { status, json, text } = await server.call('GET', '/tokens')
    assert.equal(status, 200)
    assert.deepEqual(Object.keys(json), ['tokens'])
    assert.deepEqual(pluck(json.tokens, 'label'), ['k4', 'k3', 'k2', 'k1', 'k0', 'first'])
    for (const key of json.tokens) {
      assert.deepEqual(Object.keys(key).sort(), ['createdAt', 'id', 'label', 'lastUsedAt', 'revokedAt'])
      assert.equal(key.revokedAt, null)
    }
    for (const { token } of created) {
      assert.ok(!text.includes(token))
      assert.ok(!text.includes(hashSecret(token)))
    }
  })

  test(`${engine}: a label is optional, counted in code points and stored as given`, async (t) => {
    const server = await serve(t, { engine })
    const accepted = [
      '',
      ' spaced  ',
      'x'.repeat(80),
      '😀'.repeat(80),
      'e\u0301',
      '"><img src=x>',
      'null',
      '日本語',
    ]
    for (const label of accepted) {
      const { status, json } = await server.post('/tokens', { label })
      assert.equal(status, 201, JSON.stringify(label))
      assert.equal(json.label, label)
    }
    const listed = pluck((await server.call('GET', '/tokens')).json.tokens, 'label')
    assert.deepEqual(listed, [...accepted.toReversed(), 'first'])
    assert.equal((await server.post('/tokens', {})).json.label, '')
    assert.equal((await server.call('POST', '/tokens')).json.label, '')
  })

  test(`${engine}: an invalid label is 400 and names the field`, async () => {
    const before = (await server.call('GET', '/tokens')).json.tokens.length
    const invalid = [
      'x'.repeat(81),
      '😀'.repeat(81),
      'a\u0000b',
      'a\nb',
      '\u007f',
      '\u0085',
      '\ud800',
      7,
      null,
      true,
      [],
      {},
    ]
    for (const label of invalid) {
      const { status, json } = await server.post('/tokens', { label })
      assert.deepEqual([status, json.error], [400, 'invalid_request'], JSON.stringify(label))
      assert.equal(json.details[0].path, '/body/label')
      assert.ok(json.details[0].message.length > 0)
    }
    assert.equal((await server.call('GET', '/tokens')).json.tokens.length, before)
  })

  test(`${engine}: undeclared properties of the body never reach the store`, async (t) => {
    const server = await serve(t, { engine })
    const other = await addWorkspace(server, 'other')
    const body =
      '{"label":"x","id":"tok_mine","workspaceId":"other","workspace_id":"other",' +
      '"createdAt":"1970-01-01T00:00:00.000Z","revokedAt":1,"hash":"0","token":"adit_mine",' +
      '"__proto__":{"label":"y","revokedAt":1},"constructor":{"prototype":{}}}'
    const { status, json } = await server.post('/tokens', body)
    assert.deepEqual([status, json.label], [201, 'x'])
    assert.match(json.id, KEY_ID)
    const row = await keyRow(server, json.id)
    assert.equal(row?.workspace_id, server.workspace.id)
    assert.equal(row?.revoked_at, null)
    assert.equal(row?.hash, hashSecret(json.token))
    const theirs = await server.call('GET', '/tokens', { key: other.key.token })
    assert.equal(theirs.json.tokens.length, 1)
  })

  test(`${engine}: an expiry, which this API does not have, is 400 and creates no key`, async () => {
    const before = (await server.call('GET', '/tokens')).json.tokens.length
    for (const name of ['expiresAt', 'expires', 'expires_in', 'expiry'])
      for (const value of ['2027-01-01T00:00:00.000Z', 3600, null]) {
        const { status, json } = await server.post('/tokens', { label: 'x', [name]: value })
        assert.equal(status, 400, name)
        assert.deepEqual(
          [json.error, json.details[0].path, json.details.length],
          ['invalid_request', `/body/${name}`, 1],
        )
        assert.match(json.details[0].message, /is not a field of this API.*--expires/)
      }
    assert.equal((await server.call('GET', '/tokens')).json.tokens.length, before)
  })

  test(`${engine}: a revoked key is rejected on the next request and stays in the list`, async () => {
    const created = (await server.post('/tokens', { label: 'gone' })).json
    const revoked = await server.call('DELETE', `/tokens/${created.id}`)
    assert.equal(revoked.status, 200)
    assert.deepEqual(revoked.json, { id: created.id, revoked: true })
    const rejected = await server.call('GET', '/workspace', { key: created.token })
    assert.equal(rejected.status, 401)
    assert.match(rejected.json.message, /revoked/)
    const [listed] = (await server.call('GET', '/tokens')).json.tokens
    assert.equal(listed.id, created.id)
    assert.match(listed.revokedAt, INSTANT)
  })

  test(`${engine}: a request that is completed after the revocation of its key is rejected`, async (t) => {
    const server = await serve(t, { engine })
    const leaked = (await server.post('/tokens', { label: 'leaked' })).json
    const { hostname, port } = new URL(server.url)
    const begin = (head: string) => {
      const socket = connect(Number(port), hostname)
      const response = text(socket)
      socket.write(
        `${head} HTTP/1.1\r\nHost: adit\r\nConnection: close\r\nAuthorization: Bearer ${leaked.token}\r\n`,
      )
      socket.write('Content-Type: application/json\r\nContent-Length: 16\r\n\r\n{"label"')
      return { socket, response }
    }
    const begun = [begin('POST /api/v1/tokens'), begin(`DELETE /api/v1/tokens/${server.key.id}`)]
    await new Promise((resolve) => setTimeout(resolve, 200))
    assert.equal((await server.call('DELETE', `/tokens/${leaked.id}`)).status, 200)
    for (const { socket, response } of begun) {
      socket.write(':"late"}')
      assert.match(await response, /^HTTP\/1\.1 401 /)
    }
    const { tokens } = (await server.call('GET', '/tokens')).json
    assert.deepEqual(
      tokens.map((key: { label: string; revokedAt: string | null }) => [key.label, key.revokedAt === null]),
      [
        ['leaked', false],
        ['first', true],
      ],
    )
  })

  test(`${engine}: revoking again is 404 and changes nothing`, async () => {
    const created = (await server.post('/tokens', {})).json
    await server.call('DELETE', `/tokens/${created.id}`)
    const before = await keyRow(server, created.id)
    const again = await server.call('DELETE', `/tokens/${created.id}`)
    assert.deepEqual([again.status, again.text], [404, '{"error":"not_found"}'])
    assert.deepEqual(await keyRow(server, created.id), before)
    assert.equal((await readAudit(server, created.id)).length, 2)
  })

  test(`${engine}: another workspace's key looks exactly like one that does not exist`, async (t) => {
    const server = await serve(t, { engine })
    const other = await addWorkspace(server, 'other')
    const theirs = await server.call('DELETE', `/tokens/${other.key.id}`)
    const missing = await server.call('DELETE', '/tokens/tok_00000000000000000000000000')
    assert.equal(theirs.status, 404)
    assert.equal(theirs.text, missing.text)
    const listNames = (headers: Headers) => [...headers.keys()].sort()
    assert.deepEqual(listNames(theirs.headers), listNames(missing.headers))
    assert.equal((await keyRow(server, other.key.id))?.revoked_at, null)
    assert.equal((await server.call('GET', '/workspace', { key: other.key.token })).status, 200)
  })

  test(`${engine}: any text in place of an id is 404 or 400, never 5xx`, async () => {
    const notFound = [
      'nope',
      'tok_',
      'tok_%F0%9F%98%80',
      "tok_'%20or%201=1--",
      '%2e',
      'x'.repeat(100),
      'tok_a%2Fb',
      // Not percent-encoded UTF-8, so not a path of any route.
      '%zz',
      '%ff',
      'tok_%ed%a0%80',
    ]
    for (const id of notFound) {
      const { status, text } = await server.call('DELETE', `/tokens/${id}`)
      assert.deepEqual([status, text], [404, '{"error":"not_found"}'], id)
    }
    for (const id of ['%00', 'tok_%0a', 'tok_%7f']) {
      const { status, json } = await server.call('DELETE', `/tokens/${id}`)
      assert.deepEqual([status, json.error], [400, 'invalid_request'], id)
    }
    assert.equal((await server.call('DELETE', `/tokens/${'x'.repeat(5000)}`)).status, 404)
    assert.equal((await server.call('DELETE', '/tokens/')).status, 404)
    assert.equal((await server.call('DELETE', '/tokens')).status, 404)
  })

  test(`${engine}: a key may revoke itself`, async (t) => {
    const server = await serve(t, { engine })
    assert.equal((await server.call('DELETE', `/tokens/${server.key.id}`)).status, 200)
    assert.equal((await server.call('GET', '/workspace')).status, 401)
  })

  test(`${engine}: of many concurrent revocations of one key, exactly one succeeds`, async () => {
    const created = (await server.post('/tokens', {})).json
    const responses = await Promise.all(
      Array.from({ length: 8 }, () => server.call('DELETE', `/tokens/${created.id}`)),
    )
    assert.deepEqual(responses.map(({ status }) => status).sort(), [200, 404, 404, 404, 404, 404, 404, 404])
    assert.equal((await readAudit(server, created.id)).length, 2)
  })

  test(`${engine}: creation and revocation write an audit row with the acting key`, async () => {
    const created = (await server.post('/tokens', {})).json
    await server.call('DELETE', `/tokens/${created.id}`)
    const rows = (await readAudit(server, created.id)).sort((a, b) => a.id.localeCompare(b.id))
    assert.deepEqual(
      pluck(rows, 'action', 'actor_kind', 'actor_id', 'workspace_id'),
      ['key.created', 'key.revoked'].map((action) => [action, 'key', server.key.id, server.workspace.id]),
    )
  })

  test(`${engine}: if the audit row cannot be written, nothing is created or revoked`, async (t) => {
    const server = await serve(t, { engine })
    const created = (await server.post('/tokens', { label: 'before' })).json
    await rename(server, 'audit_log', 'audit_log_away')
    assert.equal((await server.post('/tokens', { label: 'after' })).text, '{"error":"internal"}')
    assert.equal((await server.call('DELETE', `/tokens/${created.id}`)).status, 500)
    await rename(server, 'audit_log_away', 'audit_log')
    const { tokens } = (await server.call('GET', '/tokens')).json
    assert.deepEqual(pluck(tokens, 'label', 'revokedAt'), [
      ['before', null],
      ['first', null],
    ])
  })

  test(`${engine}: the database holds no raw key, only its SHA-256`, async (t) => {
    const server = await serve(t, { engine })
    const headers = { 'idempotency-key': '1' }
    const created = (await server.post('/tokens', { label: 'x' }, headers)).json
    const { db } = server.services.store
    const tables = ['workspaces', 'api_keys', 'audit_log', 'idempotent_responses', 'edges'] as const
    const rows = (await Promise.all(tables.map((table) => db.selectFrom(table).selectAll().execute()))).flat()
    const texts = rows.flatMap((row) => Object.values(row).filter((value) => typeof value === 'string'))
    assert.ok(texts.includes(hashSecret(created.token)))
    // As stored, and decoded.
    const readings = texts.flatMap((value) =>
      (['utf8', 'base64', 'base64url', 'hex'] as const).map((encoding) =>
        Buffer.from(value, encoding).toString('latin1'),
      ),
    )
    for (const secret of [created.token, server.key.token])
      for (const reading of readings) assert.ok(!reading.includes(secret.slice(5, 20)))
  })

  test(`${engine}: lastUsedAt is null before the first use, and a use shows within 5 s`, async (t) => {
    const server = await serve(t, { engine })
    const created = (await server.post('/tokens', { label: 'x' })).json
    const lastUsed = async () => (await server.call('GET', '/tokens')).json.tokens[0].lastUsedAt
    assert.equal(await lastUsed(), null)
    const before = Date.now()
    await server.call('GET', '/workspace', { key: created.token })
    await until('the use is shown', async () => (await lastUsed()) !== null, 5_000)
    const shown = Date.parse(await lastUsed())
    assert.ok(shown >= before && shown <= Date.now())
  })

  test(`${engine}: variant B lists keys and has no route that creates or revokes one`, async (t) => {
    const server = await serve(t, { engine, env: { ADIT_API_VARIANT: 'B' } })
    assert.equal((await server.call('GET', '/tokens')).json.tokens.length, 1)
    for (const [method, path] of [
      ['POST', '/tokens'],
      ['DELETE', `/tokens/${server.key.id}`],
      ['GET', `/tokens/${server.key.id}`],
    ] as const) {
      for (const key of [server.key.token, null]) {
        const { status, text } = await server.call(method, path, { key })
        assert.deepEqual([status, text], [404, '{"error":"not_found"}'])
      }
    }
    assert.equal((await server.call('GET', '/tokens')).json.tokens.length, 1)
  })
}
