// Admin commands: real processes on both engines.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { sql } from 'kysely'
import { createSecret, isSecret } from '../../../src/lib/credentials/secret.ts'
import { listForOperator } from '../../../src/server/domain/keys/operator.ts'
import { caller, openTestServices, serve } from '../../support/api/server.ts'
import { createMigratedDatabase, engines } from '../../support/databases/create.ts'
import { recordQueries } from '../../support/databases/recorded-queries.ts'
import { pluck } from '../../support/pluck.ts'
import { run, startServing } from '../../support/processes/process.ts'

for (const engine of engines) {
  test(`${engine}: workspaces are created, listed and provisioned`, async (t) => {
    const env = {
      ADIT_DATABASE_URL: await createMigratedDatabase(t, engine),
      ADIT_TUNNEL_DOMAIN: 'tunnels.example.com',
    }
    const json = async (...args: string[]) => JSON.parse((await run(t, [...args, '--json'], env)).stdout)
    const workspace = await json('admin', 'workspace', 'create', 'acme', '--name', 'Acme & Söhne')
    assert.equal(workspace.slug, 'acme')
    assert.equal(workspace.name, 'Acme & Söhne')
    assert.equal(workspace.provisioned, false)
    assert.equal(workspace.tunnelBase, 'acme.tunnels.example.com')
    assert.equal((await json('admin', 'workspace', 'create', 'beta', '--provisioned')).provisioned, true)
    assert.equal((await json('admin', 'workspace', 'provision', 'acme')).provisioned, true)
    assert.equal(
      (await json('admin', 'workspace', 'provision', 'acme')).provisioned,
      true,
      'provisioning is idempotent',
    )
    const list = await json('admin', 'workspace', 'list')
    assert.deepEqual(pluck(list, 'slug', 'name'), [
      ['acme', 'Acme & Söhne'],
      ['beta', 'beta'],
    ])
    const { stdout } = await run(t, ['admin', 'workspace', 'list'], env)
    assert.match(stdout, /^SLUG +NAME +PROVISIONED/)
    assert.match(stdout, /acme +Acme & Söhne +yes/)
  })

  test(`${engine}: a running server applies created and revoked keys immediately`, async (t) => {
    const env = { ADIT_DATABASE_URL: await createMigratedDatabase(t, engine), ADIT_LOG_LEVEL: 'silent' }
    await run(t, ['admin', 'workspace', 'create', 'acme'], env)
    const { api } = await startServing(t, env)
    const key = JSON.parse(
      (await run(t, ['admin', 'key', 'create', '--workspace', 'acme', '--label', 'ci', '--json'], env))
        .stdout,
    )
    assert.deepEqual(Object.keys(key), ['id', 'token', 'label', 'createdAt', 'expiresAt', 'userId'])
    assert.ok(isSecret('key', key.token))
    const call = caller(api, key.token)
    assert.equal((await call('GET', '/workspace')).status, 200)

    const bare = await run(t, ['admin', 'key', 'create', '--workspace', 'acme'], env)
    assert.ok(isSecret('key', bare.stdout.trim()), 'only the key is on standard output')
    assert.match(bare.stderr, /not shown again/)

    const list = JSON.parse(
      (await run(t, ['admin', 'key', 'list', '--workspace', 'acme', '--json'], env)).stdout,
    )
    assert.equal(list.length, 2)
    assert.equal(list[1].id, key.id)
    assert.equal(list[1].workspace, 'acme')
    assert.ok(!JSON.stringify(list).includes('adit_'))

    const revoked = await run(t, ['admin', 'key', 'revoke', key.id, '--json'], env)
    assert.deepEqual(JSON.parse(revoked.stdout), { id: key.id, revoked: true })
    assert.equal((await call('GET', '/workspace')).status, 401)
    assert.match((await run(t, ['admin', 'key', 'list'], env)).stdout, new RegExp(`${key.id} .*revoked 20`))
  })

  test(`${engine}: edges are created, listed and revoked`, async (t) => {
    const env = { ADIT_DATABASE_URL: await createMigratedDatabase(t, engine) }
    const edge = JSON.parse((await run(t, ['admin', 'edge', 'create', 'fra-1', '--json'], env)).stdout)
    assert.deepEqual(Object.keys(edge), ['id', 'name', 'group', 'url', 'token', 'createdAt'])
    assert.ok(isSecret('edge', edge.token))
    assert.ok(!isSecret('key', edge.token))
    const [listed] = JSON.parse((await run(t, ['admin', 'edge', 'list', '--json'], env)).stdout)
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
    assert.equal((await run(t, ['admin', 'edge', 'revoke', edge.id, '--yes'], env)).code, 0)
    assert.match((await run(t, ['admin', 'edge', 'list'], env)).stdout, /revoked 20/)
    assert.equal((await run(t, ['admin', 'edge', 'revoke', edge.id], env)).code, 1)
  })

  test(`${engine}: edges and workspaces get groups`, async (t) => {
    const env = { ADIT_DATABASE_URL: await createMigratedDatabase(t, engine) }
    const adit = (...args: string[]) => run(t, ['admin', ...args], env)
    assert.match((await adit('edge', 'create', 'fra-1', '--group', 'eu')).stderr, /There is no group "eu"/)
    assert.match((await adit('edge-group', 'create', 'Eu')).stderr, /must be lower-case letters/)
    assert.equal((await adit('edge-group', 'create', 'eu')).stdout, 'Created the group "eu".\n')
    assert.match((await adit('edge-group', 'create', 'eu')).stderr, /already exists/)
    await adit('edge', 'create', 'fra-1', '--group', 'eu')
    assert.match((await adit('edge', 'list')).stdout, /fra-1 +eu /)
    await adit('workspace', 'create', 'acme')
    assert.match((await adit('workspace', 'set-group', 'acme', 'us')).stderr, /There is no group "us"/)
    assert.equal((await adit('workspace', 'set-group', 'acme', 'eu')).code, 0)
    const [workspace] = JSON.parse((await adit('workspace', 'list', '--json')).stdout)
    assert.equal(workspace.group, 'eu')
    assert.deepEqual(JSON.parse((await adit('edge-group', 'list', '--json')).stdout), [
      { name: 'default', edges: 0, workspaces: 0 },
      { name: 'eu', edges: 1, workspaces: 1 },
    ])
  })

  test(`${engine}: the demo fills a year whose days add up, and repeating it changes nothing`, async (t) => {
    const env = { ADIT_DATABASE_URL: await createMigratedDatabase(t, engine), ADIT_LOG_LEVEL: 'silent' }
    await run(t, ['admin', 'workspace', 'create', 'show'], env)
    const token = (await run(t, ['admin', 'key', 'create', '--workspace', 'show'], env)).stdout.trim()
    const demo = await run(t, ['admin', 'demo', '--workspace', 'show', '--json'], env)
    assert.deepEqual(JSON.parse(demo.stdout), { workspace: 'show', days: 365 })
    const { api } = await startServing(t, env)
    const read = async () => (await caller(api, token)('GET', '/usage?days=365')).json
    const usage = await read()
    assert.equal(usage.series.length, 365)
    const sum = usage.series.reduce((total: number, day: { bytes: number }) => total + day.bytes, 0)
    assert.equal(sum, usage.totalBytes)
    assert.ok(usage.totalBytes > 1e9)
    assert.ok(usage.peakTunnels > 1 && usage.eventCount > 100 && usage.lastSeen)
    await run(t, ['admin', 'demo', '--workspace', 'show'], env)
    assert.deepEqual((await read()).series.slice(0, -1), usage.series.slice(0, -1))
  })
}

test('a raw key on standard input is identified, and rotated by its ID', async (t) => {
  const env = { ADIT_DATABASE_URL: await createMigratedDatabase(t, 'sqlite') }
  const json = async (...args: string[]) => JSON.parse((await run(t, [...args, '--json'], env)).stdout)
  const find = (input: string, ...flags: string[]) => run(t, ['admin', 'key', 'find', ...flags], env, input)
  await json('admin', 'workspace', 'create', 'acme')
  const old = await json('admin', 'key', 'create', '--workspace', 'acme', '--label', 'ci')
  const edge = await json('admin', 'edge', 'create', 'fra-1')

  const found = JSON.parse((await find(`${old.token}\n`, '--json')).stdout)
  const { kind, id, workspace, label, state, lastUsedAt, lastFour } = found
  assert.deepEqual(
    [kind, id, workspace, label, state, lastUsedAt],
    ['key', old.id, 'acme', 'ci', 'active', null],
  )
  assert.equal(lastFour, old.token.slice(-4))
  assert.match((await find(edge.token)).stdout, new RegExp(`edge "fra-1" \\(${edge.id}\\)\n  State +active`))

  const overlapping = await run(t, ['admin', 'key', 'rotate', old.id], env)
  assert.ok(isSecret('key', overlapping.stdout.trim()), 'only the key is on standard output')
  assert.match(overlapping.stderr, new RegExp(`The old key ${old.id} stays valid until 20`))
  const again = await run(t, ['admin', 'key', 'rotate', old.id], env)
  assert.equal(again.code, 1)
  assert.match(again.stderr, /was already rotated: its successor is tok_/)
  const { id: successorId } = JSON.parse((await find(overlapping.stdout, '--json')).stdout)
  const next = await json('admin', 'key', 'rotate', successorId, '--overlap', 'none')
  const replaced = await find(overlapping.stdout)
  assert.match(replaced.stdout, /State +revoked 20/)
  const successor = `Successor +${next.id} \\(ends with ${next.token.slice(-4)}\\)`
  assert.match(replaced.stdout, new RegExp(successor))
  assert.match((await find(old.token)).stdout, new RegExp(successor), 'indirectly')
  for (const verb of ['revoke', 'rotate']) {
    const gone = await run(t, ['admin', 'key', verb, successorId], env)
    assert.deepEqual([gone.code, gone.stdout], [1, ''])
    assert.match(gone.stderr, new RegExp(`API key ${successorId} was revoked at 20`))
  }
  assert.equal((await run(t, ['admin', 'key', 'rotate', next.id, '--overlap', '2h'], env)).code, 2)

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
  const { config, key, url, workspace } = await serve(t, { engine: 'sqlite' })
  const database = config.database as { path: string }
  const env = {
    ADIT_DATABASE_URL: `sqlite:${database.path}`,
    ADIT_URL: url,
    ADIT_API_KEY: key.token,
  }
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
  assert.equal(rejected.code, 4)
  assert.match(
    rejected.stderr,
    /The workspace of this API key is archived\. The operator can restore it within/,
  )
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
