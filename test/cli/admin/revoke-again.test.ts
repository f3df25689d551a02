// `adit admin revoke-again`, on the database of a running server.
import assert from 'node:assert/strict'
import { chmodSync, existsSync, linkSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { sql } from 'kysely'
import { setDisabled } from '../../../src/server/domain/accounts/users.ts'
import { createKey } from '../../../src/server/domain/keys/lifecycle.ts'
import { revokeAsOperator } from '../../../src/server/domain/keys/operator.ts'
import { createEdge, revoke as revokeEdge } from '../../../src/server/domain/tunnels/edges.ts'
import type { Store } from '../../../src/server/store/engine/store.ts'
import { addMember } from '../../support/accounts/users.ts'
import { databaseUrl, openTestServices, operator, serve } from '../../support/api/server.ts'
import {
  createDatabase,
  createFolder,
  createMigratedDatabase,
  engines,
} from '../../support/databases/create.ts'
import { insertRevokedKeys } from '../../support/databases/many-keys.ts'
import { assertFailed } from '../../support/processes/commands.ts'
import { run } from '../../support/processes/process.ts'

/** More than one batch. */
const MANY = 1_200

async function copyRows(from: Store, to: Store): Promise<void> {
  for (const table of ['workspaces', 'users', 'members', 'api_keys', 'edges'] as const) {
    const rows = await from.db.selectFrom(table).selectAll().execute()
    await to.transaction((db) => db.insertInto(table).values(rows).execute())
  }
}

for (const engine of engines)
  test(`${engine}: what is revoked in another database is revoked on every node`, async (t) => {
    const server = await serve(t, { engine })
    const { services, workspace } = server
    const ctx = { ...services, actor: operator, workspaceId: workspace.id }
    const [leaked, valid] = [await createKey(ctx, { label: 'leaked' }), await createKey(ctx)]
    const [lost, other] = [
      await createEdge(services, operator, 'fra-1'),
      await createEdge(services, operator, 'fra-2'),
    ]
    const ann = await addMember(server, 'ann', 'owner')
    const bob = await addMember(server, 'bob', 'member')
    const bobsKey = (await bob.post('/workspaces/acme/keys', { label: '', personal: true })).json
    const many = await insertRevokedKeys(services.store, workspace.id, MANY)
    await services.store.transaction((db) =>
      db.updateTable('api_keys').set({ revoked_at: null }).where('id', 'in', many.slice(1)).execute(),
    )
    const { services: old, database } = await openTestServices(t, engine)
    await copyRows(services.store, old.store)
    await old.store.transaction((db) =>
      db.updateTable('api_keys').set({ revoked_at: 1 }).where('id', 'in', many).execute(),
    )
    const late = await createKey({ ...old, actor: operator, workspaceId: workspace.id })
    for (const { id } of [leaked, late]) await revokeAsOperator(old, operator, id)
    await revokeEdge(old, operator, lost.id)
    await setDisabled(old, operator, 'bob@example.com', true)
    await old.store.close()

    const status = async (key: string) => (await server.call('GET', '/workspace', { key })).status
    assert.equal(await status(leaked.token), 200)
    const revokeAgain = async (...args: string[]) => {
      const from = database.replace('sqlite:', '')
      const result = await run(t, ['admin', 'revoke-again', from, ...args], {
        ADIT_DATABASE_URL: databaseUrl(server),
      })
      assert.equal(result.code, 0, result.stderr)
      return result
    }
    const first = await revokeAgain('--json')
    assert.equal(first.stderr, '')
    assert.deepEqual(JSON.parse(first.stdout), [
      { kind: 'key', revoked: MANY - 1 + 2, alreadyRevoked: 1, missing: 1 },
      { kind: 'edge', revoked: 1, alreadyRevoked: 0, missing: 0 },
      { kind: 'user', revoked: 1, alreadyRevoked: 0, missing: 0 },
    ])
    for (const [key, expected] of [
      [leaked, 401],
      [bobsKey, 401],
      [valid, 200],
      [server.key, 200],
    ] as const)
      assert.equal(await status(key.token), expected)
    for (const [edge, expected] of [
      [lost, 401],
      [other, 200],
    ] as const)
      assert.equal((await openChanges(server.url, edge.token)).status, expected)
    assert.equal((await bob.get('/session')).status, 401)
    const { entries } = (await ann.get(`/workspaces/acme/audit?target=${leaked.id}`)).json
    assert.deepEqual(
      entries.map(({ action, actor }: { action: string; actor: { kind: string } }) => [action, actor.kind]),
      [
        ['key.revoked', 'operator'],
        ['key.created', 'operator'],
      ],
    )

    const second = await revokeAgain()
    assert.equal(
      second.stdout,
      [
        'KIND  REVOKED  ALREADY REVOKED  NOT HERE',
        'key   0        1202             1',
        'edge  0        1                0',
        'user  0        1                0',
        '',
      ].join('\n'),
    )
    const { rows } = await sql<{ count: number | string }>`select count(*) as count from audit_log
      where action = 'key.revoked'`.execute(services.store.db)
    assert.equal(Number(rows[0]?.count), MANY - 1 + 2, 'one entry for each key')
  })

async function openChanges(url: string, token: string) {
  const headers = { authorization: `Bearer ${token}` }
  const response = await fetch(`${url}/edge/v1/key-changes`, { headers })
  await response.body?.cancel()
  return response
}

test('revoke-again needs another database of Adit, and creates none', async (t) => {
  const database = await createMigratedDatabase(t, 'sqlite')
  const folder = createFolder(t)
  const text = join(folder, 'notes.txt')
  writeFileSync(text, 'not a database, and long enough to be read as the header of one '.repeat(10))
  const link = join(folder, 'link.db')
  linkSync(database.slice('sqlite:'.length), link)
  const partial = (await createMigratedDatabase(t, 'sqlite')).slice('sqlite:'.length)
  changeFile(partial, 'drop table edges')
  for (const [from, code, message] of [
    [join(folder, 'none.db'), 1, /^adit: No database at .*none\.db\. Nothing was changed\.$/m],
    [database, 2, /It is the database of ADIT_DATABASE_URL\./],
    [text, 1, /notes\.txt.*Nothing was changed\.$/m],
    [link, 2, /It is the database of ADIT_DATABASE_URL\./],
    ['postgres:ann:hunter2@db', 2, /The database must be sqlite:<path> or postgres:/],
    ['POSTGRES://ann:hunter2@db/adit', 2, /The database must be sqlite:<path> or postgres:/],
    ['mysql://ann:hunter2@db/adit', 2, /The database must be sqlite:<path> or postgres:/],
    [partial, 1, /The other database cannot be read: no such table: edges\. You can run the command again\./],
    [await createDatabase(t, 'postgres'), 1, /It has no tables of Adit\. Nothing was changed\.$/m],
  ] as const) {
    const result = await run(t, ['admin', 'revoke-again', from], { ADIT_DATABASE_URL: database })
    assert.deepEqual([result.code, result.stdout], [code, ''])
    assert.match(result.stderr, message)
    assert.ok(!result.stderr.includes('hunter2'))
  }
})

function changeFile(path: string, statements: string): void {
  const database = new DatabaseSync(path, { enableForeignKeyConstraints: false })
  database.exec(statements)
  database.close()
}

test('revoke-again does not change an old file', async (t) => {
  const database = await createMigratedDatabase(t, 'sqlite')
  const old = (await createMigratedDatabase(t, 'sqlite')).slice('sqlite:'.length)
  // As backups have it.
  changeFile(old, 'pragma journal_mode = delete')
  const before = readFileSync(old)
  chmodSync(old, 0o400)
  const result = await run(t, ['admin', 'revoke-again', old], { ADIT_DATABASE_URL: database })
  assert.deepEqual([result.code, result.stderr], [0, ''])
  assert.ok(readFileSync(old).equals(before))
  assert.deepEqual([existsSync(`${old}-wal`), existsSync(`${old}-shm`)], [false, false])
})

test('postgres: revoke-again rejects the same database under another URL', async (t) => {
  const database = await createMigratedDatabase(t, 'postgres')
  const same = `${database}?application_name=other`
  const env = { ADIT_DATABASE_URL: database }
  for (const url of [database, same]) {
    const result = await run(t, ['admin', 'revoke-again', url], env)
    assertFailed(result, 2, /It is the database of ADIT_DATABASE_URL\./)
  }
  const another = await createMigratedDatabase(t, 'postgres')
  assert.equal((await run(t, ['admin', 'revoke-again', another], env)).code, 0)
})
