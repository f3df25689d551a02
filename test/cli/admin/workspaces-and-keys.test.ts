// Admin commands: real processes on both engines.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { sql } from 'kysely'
import { createSecret, isSecret } from '../../../src/lib/credentials/secret.ts'
import { listForOperator } from '../../../src/server/domain/keys/operator.ts'
import { caller, databaseUrl, openTestServices, serve } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { recordQueries } from '../../support/databases/recorded-queries.ts'
import { pluck } from '../../support/pluck.ts'
import { assertFailed, createOperator } from '../../support/processes/commands.ts'
import { run, startServing } from '../../support/processes/process.ts'

for (const engine of engines) {
  test(`${engine}: workspaces are created, listed and provisioned`, async (t) => {
    const domain = 'tunnels.example.com'
    const { adit, json } = await createOperator(t, engine, { ADIT_TUNNEL_DOMAIN: domain })
    assert.partialDeepStrictEqual(await json('workspace', 'create', 'acme', '--name', 'Acme & Söhne'), {
      slug: 'acme',
      name: 'Acme & Söhne',
      provisioned: false,
      tunnelBase: 'acme.tunnels.example.com',
    })
    assert.equal((await json('workspace', 'create', 'beta', '--provisioned')).provisioned, true)
    // The second time changes nothing.
    for (const _ of [1, 2]) assert.equal((await json('workspace', 'provision', 'acme')).provisioned, true)
    assert.deepEqual(pluck(await json('workspace', 'list'), 'slug', 'name'), [
      ['acme', 'Acme & Söhne'],
      ['beta', 'beta'],
    ])
    const { stdout } = await adit('workspace', 'list')
    assert.match(stdout, /^SLUG +NAME +PROVISIONED/)
    assert.match(stdout, /acme +Acme & Söhne +yes/)
  })

  test(`${engine}: a running server applies created and revoked keys immediately`, async (t) => {
    const { env, adit, json } = await createOperator(t, engine)
    await adit('workspace', 'create', 'acme')
    const { api } = await startServing(t, env)
    const key = await json('key', 'create', '--workspace', 'acme', '--label', 'ci')
    assert.deepEqual(Object.keys(key), ['id', 'token', 'label', 'createdAt', 'expiresAt', 'userId'])
    assert.ok(isSecret('key', key.token))
    const call = caller(api, key.token)
    assert.equal((await call('GET', '/workspace')).status, 200)

    const bare = await adit('key', 'create', '--workspace', 'acme')
    assert.ok(isSecret('key', bare.stdout.trim()), 'only the key is on standard output')
    assert.match(bare.stderr, /not shown again/)

    const list = await json('key', 'list', '--workspace', 'acme')
    assert.deepEqual([list.length, list[1].id, list[1].workspace], [2, key.id, 'acme'])
    assert.ok(!JSON.stringify(list).includes('adit_'))

    assert.deepEqual(await json('key', 'revoke', key.id), { id: key.id, revoked: true })
    assert.equal((await call('GET', '/workspace')).status, 401)
    assert.match((await adit('key', 'list')).stdout, new RegExp(`${key.id} .*revoked 20`))
  })

  test(`${engine}: edges are created, listed and revoked`, async (t) => {
    const { adit, json } = await createOperator(t, engine)
    const edge = await json('edge', 'create', 'fra-1')
    assert.deepEqual(Object.keys(edge), ['id', 'name', 'group', 'url', 'token', 'createdAt'])
    assert.ok(isSecret('edge', edge.token))
    assert.ok(!isSecret('key', edge.token))
    const [listed] = await json('edge', 'list')
    assert.deepEqual(listed, {
      id: edge.id,
      name: 'fra-1',
      group: 'default',
      url: null,
      createdAt: edge.createdAt,
      revokedAt: null,
      version: null,
      startedAt: null,
      lastSyncAt: null,
      isConnected: false,
      peerAddress: null,
      tunnels: 0,
      streams: 0,
    })
    assert.equal((await adit('edge', 'revoke', edge.id, '--yes')).code, 0)
    assert.match((await adit('edge', 'list')).stdout, /revoked 20/)
    assert.equal((await adit('edge', 'revoke', edge.id)).code, 1)
  })

  test(`${engine}: edges and workspaces get groups`, async (t) => {
    const { adit, json } = await createOperator(t, engine)
    assert.match((await adit('edge', 'create', 'fra-1', '--group', 'eu')).stderr, /There is no group "eu"/)
    assert.match((await adit('edge-group', 'create', 'Eu')).stderr, /must be lower-case letters/)
    assert.equal((await adit('edge-group', 'create', 'eu')).stdout, 'Created the group "eu".\n')
    assert.match((await adit('edge-group', 'create', 'eu')).stderr, /already exists/)
    await adit('edge', 'create', 'fra-1', '--group', 'eu')
    assert.match((await adit('edge', 'list')).stdout, /fra-1 +eu /)
    await adit('workspace', 'create', 'acme')
    assert.match((await adit('workspace', 'set-group', 'acme', 'us')).stderr, /There is no group "us"/)
    assert.equal((await adit('workspace', 'set-group', 'acme', 'eu')).code, 0)
    const [workspace] = await json('workspace', 'list')
    assert.equal(workspace.group, 'eu')
    assert.deepEqual(await json('edge-group', 'list'), [
      { name: 'default', edges: 0, workspaces: 0 },
      { name: 'eu', edges: 1, workspaces: 1 },
    ])
  })

  test(`${engine}: the demo fills a year whose days add up, and repeating it changes nothing`, async (t) => {
    const { env, adit, json } = await createOperator(t, engine)
    await adit('workspace', 'create', 'show')
    const token = (await adit('key', 'create', '--workspace', 'show')).stdout.trim()
    assert.deepEqual(await json('demo', '--workspace', 'show'), { workspace: 'show', days: 365 })
    const { api } = await startServing(t, env)
    const read = async () => (await caller(api, token)('GET', '/usage?days=365')).json
    const usage = await read()
    assert.equal(usage.series.length, 365)
    const sum = usage.series.reduce((total: number, day: { bytes: number }) => total + day.bytes, 0)
    assert.equal(sum, usage.totalBytes)
    assert.ok(usage.totalBytes > 1e9)
    assert.ok(usage.peakTunnels > 1 && usage.eventCount > 100 && usage.lastSeen)
    await adit('demo', '--workspace', 'show')
    assert.deepEqual((await read()).series.slice(0, -1), usage.series.slice(0, -1))
  })
}

test('a raw key on standard input is identified, and rotated by its ID', async (t) => {
  const { env, adit, json } = await createOperator(t)
  const find = (input: string, ...flags: string[]) => run(t, ['admin', 'key', 'find', ...flags], env, input)
  await json('workspace', 'create', 'acme')
  const old = await json('key', 'create', '--workspace', 'acme', '--label', 'ci')
  const edge = await json('edge', 'create', 'fra-1')

  const found = JSON.parse((await find(`${old.token}\n`, '--json')).stdout)
  const { kind, id, workspace, label, state, lastUsedAt, lastFour } = found
  assert.deepEqual(
    [kind, id, workspace, label, state, lastUsedAt],
    ['key', old.id, 'acme', 'ci', 'active', null],
  )
  assert.equal(lastFour, old.token.slice(-4))
  assert.match((await find(edge.token)).stdout, new RegExp(`edge "fra-1" \\(${edge.id}\\)\n  State +active`))

  const overlapping = await adit('key', 'rotate', old.id)
  assert.ok(isSecret('key', overlapping.stdout.trim()), 'only the key is on standard output')
  assert.match(overlapping.stderr, new RegExp(`The old key ${old.id} stays valid until 20`))
  const again = await adit('key', 'rotate', old.id)
  assertFailed(again, 1, /was already rotated: its successor is tok_/)
  const { id: successorId } = JSON.parse((await find(overlapping.stdout, '--json')).stdout)
  const next = await json('key', 'rotate', successorId, '--overlap', 'none')
  const replaced = await find(overlapping.stdout)
  assert.match(replaced.stdout, /State +revoked 20/)
  const successor = `Successor +${next.id} \\(ends with ${next.token.slice(-4)}\\)`
  assert.match(replaced.stdout, new RegExp(successor))
  assert.match((await find(old.token)).stdout, new RegExp(successor), 'indirectly')
  for (const verb of ['revoke', 'rotate']) {
    const gone = await adit('key', verb, successorId)
    assertFailed(gone, 1, new RegExp(`API key ${successorId} was revoked at 20`))
  }
  assert.equal((await adit('key', 'rotate', next.id, '--overlap', '2h')).code, 2)

  const wrong = next.token.slice(0, -1) + (next.token.endsWith('x') ? 'y' : 'x')
  for (const [input, code, message] of [
    [wrong, 2, /not a complete Adit key: the checksum does not match/],
    [next.token.slice(0, -1), 2, /not a complete Adit key \(expected/],
    ['', 2, /No API key on standard input/],
    [createSecret('key', randomBytes), 1, /this database has no such key/],
  ] as const) {
    const rejected = await find(input)
    assert.equal(rejected.code, code)
    assert.match(rejected.stderr, message)
    assert.ok(input === '' || !rejected.stderr.includes(input), 'the input is not repeated')
  }
})

test('commands say that a workspace is archived, and the operator how to restore it', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const { key, url, workspace } = server
  const env = { ADIT_DATABASE_URL: databaseUrl(server), ADIT_URL: url, ADIT_API_KEY: key.token }
  const adit = (command: string, input?: string) => run(t, command.split(' '), env, input)
  await adit(`admin workspace archive ${workspace.slug} --yes`)
  assert.match((await adit('admin key list')).stdout, new RegExp(`${key.id} .* workspace archived$`, 'm'))
  assert.match((await adit('admin key find', key.token)).stdout, /State +workspace archived/)
  const [listed] = JSON.parse((await adit('admin key list --json')).stdout)
  assert.deepEqual([listed.state, typeof listed.workspaceArchivedAt], ['active', 'string'])
  const remedy = /workspace "acme" is archived. Restore it with `adit admin workspace restore acme`/
  for (const command of [
    'admin key create --workspace acme',
    `admin key rotate ${key.id}`,
    'admin user invite a@example.com --workspace acme --role member',
    'admin demo --workspace acme',
    'admin workspace provision acme',
  ]) {
    const refused = await adit(command)
    assert.deepEqual([refused.code, refused.stdout], [1, ''], command)
    assert.match(refused.stderr, remedy, command)
  }
  const rejected = await adit('keys list')
  assertFailed(rejected, 4, /The workspace of this API key is archived\. The operator can restore it within/)
  assert.doesNotMatch(rejected.stderr, /login|valid key/, 'another key is rejected, too')
})

test('the keys of many workspaces are listed by one statement for each 500', async (t) => {
  const { services } = await openTestServices(t, 'postgres')
  const { store } = services
  await sql`insert into workspaces (id, slug, name, created_at, provisioned_at)
    select 'ws_' || n, 'many-' || n, 'Many', 1, 1 from generate_series(1, 600) as n`.execute(store.db)
  await sql`insert into api_keys (id, workspace_id, label, hash, created_at, created_by_kind, created_by, last_four)
    select 'tok_' || lpad(n::text, 26, '0'), 'ws_' || n, '', n::text, 1, 'operator', 'root', '0000'
    from generate_series(1, 600) as n`.execute(store.db)
  const queries = recordQueries(t)
  const slugs = []
  for await (const slice of listForOperator(services)) slugs.push(...slice.map(({ workspace }) => workspace))
  assert.deepEqual([slugs.length, slugs[0], slugs.at(-1)], [600, 'many-600', 'many-1'])
  assert.equal(queries.filter(({ text }) => text.includes('api_keys')).length, 2)
  assert.ok(queries.length < 10, `${queries.length}`)
})
