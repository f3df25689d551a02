// Lists longer than one page: complete, in order, each item once.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { databaseUrl, serve, type TestServer } from '../support/api/server.ts'
import { engines } from '../support/databases/create.ts'
import { insertRevokedKeys } from '../support/databases/many-keys.ts'
import { pluck } from '../support/pluck.ts'
import { run } from '../support/processes/process.ts'

const MANY = 1_200

const databaseEnvironment = (server: TestServer) => ({ ADIT_DATABASE_URL: databaseUrl(server) })

/** The rows of a table, without the header. */
const tableRows = (stdout: string) => stdout.trimEnd().split('\n').slice(1)

const numbered = (index: number) => String(index).padStart(4, '0')

for (const engine of engines) {
  test(`${engine}: all keys of a workspace are listed, by admin commands and through the API`, async (t) => {
    const server = await serve(t, { engine })
    const revoked = await insertRevokedKeys(server.services.store, server.workspace.id, MANY)
    const ids = [server.key.id, ...revoked]
    const operator = databaseEnvironment(server)
    const user = { ADIT_URL: server.url, ADIT_API_KEY: server.key.token }
    for (const [args, env] of [
      [['admin', 'key', 'list'], operator],
      [['admin', 'key', 'list', '--workspace', 'acme'], operator],
      [['keys', 'list'], user],
    ] as const) {
      const json = await run(t, [...args, '--json'], env)
      assert.deepEqual(pluck(JSON.parse(json.stdout), 'id'), ids, json.stderr)
      const { stdout } = await run(t, [...args], env)
      assert.match(stdout, /^ID +(WORKSPACE +ENDS WITH +)?LABEL +CREATED +LAST USED +(EXPIRES +)?STATE\n/)
      assert.deepEqual(
        tableRows(stdout).map((line) => line.split(' ', 1)[0]),
        ids,
      )
    }
  })

  test(`${engine}: all workspaces and all users are listed, with their memberships`, async (t) => {
    const server = await serve(t, { engine })
    const indexes = Array.from({ length: MANY }, (_, index) => index)
    const workspaces = indexes.map((index) => ({
      id: `ws_${index}`,
      slug: `w-${numbered(index)}`,
      name: 'Many',
      created_at: 1,
      provisioned_at: null,
    }))
    const users = indexes.map((index) => ({
      id: `usr_${index}`,
      name: 'User',
      email: `user-${numbered(index)}@example.com`,
      email_verified: 1,
      two_factor_enabled: 0,
      created_at: 1,
      updated_at: 1,
      disabled_at: null,
    }))
    const members = indexes.flatMap((index) =>
      [index, (index + 1) % MANY].map((other) => ({
        workspace_id: `ws_${other}`,
        user_id: `usr_${index}`,
        role: 'member' as const,
        created_at: 1,
      })),
    )
    await server.services.store.transaction(async (db) => {
      await db.insertInto('workspaces').values(workspaces).execute()
      await db.insertInto('users').values(users).execute()
      await db.insertInto('members').values(members).execute()
    })
    const env = databaseEnvironment(server)
    const listed = async (...args: string[]) => JSON.parse((await run(t, [...args, '--json'], env)).stdout)
    assert.deepEqual(pluck(await listed('admin', 'workspace', 'list'), 'slug'), [
      'acme',
      ...workspaces.map(({ slug }) => slug),
    ])
    const allUsers = await listed('admin', 'user', 'list')
    assert.deepEqual(
      pluck(allUsers, 'email'),
      users.map(({ email }) => email),
    )
    for (const index of [0, 499, 500, MANY - 2])
      assert.deepEqual(allUsers[index].workspaces, [
        { slug: `w-${numbered(index)}`, role: 'member' },
        { slug: `w-${numbered(index + 1)}`, role: 'member' },
      ])
    const table = (await run(t, ['admin', 'user', 'list'], env)).stdout
    assert.equal(tableRows(table).length, MANY)
  })
}

test('an empty list is an empty array as JSON, and a sentence as text', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const env = databaseEnvironment(server)
  assert.equal((await run(t, ['admin', 'user', 'list', '--json'], env)).stdout, '[]\n')
  assert.equal((await run(t, ['admin', 'user', 'list'], env)).stdout, 'No users.\n')
})
