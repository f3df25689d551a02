// How changes are announced to the other nodes, and when a node counts as up to date.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Kysely, type KyselyPlugin, sql } from 'kysely'
import { createKey, revoke } from '../../../src/server/domain/keys/lifecycle.ts'
import { createWorkspace } from '../../../src/server/domain/workspaces/manage.ts'
import { type LinkedChange, readHead } from '../../../src/server/store/change-log/entries.ts'
import { insertNode } from '../../../src/server/store/change-log/nodes.ts'
import { type Db, openStore, type Store } from '../../../src/server/store/engine/store.ts'
import { lockWorkspace } from '../../../src/server/store/workspaces.ts'
import { encodeAnnouncement, parseAnnouncement } from '../../../src/server/verification/announcement.ts'
import { LEASE_MS } from '../../../src/server/verification/lease.ts'
import { createPropagationWait, hasReached } from '../../../src/server/verification/propagation-wait.ts'
import { openTestServices, operator } from '../../support/api/server.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { createMigratedDatabase } from '../../support/databases/create.ts'
import { until } from '../../support/until.ts'
import { startFollower } from './node.ts'

const change: fc.Arbitrary<LinkedChange> = fc.record<LinkedChange>(
  {
    sequence: fc.nat(),
    checksum: fc.string(),
    previousChecksum: fc.string(),
    kind: fc.constantFrom('key', 'key-expiry', 'edge', 'workspace'),
    subjectId: fc.string(),
    hash: fc.string(),
    expiresAt: fc.option(fc.nat()),
  },
  { noNullPrototype: true },
)

test('an announcement contains the changes in order, or nothing if they are too many for PostgreSQL', () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 100 }), (changes) => {
      const text = encodeAnnouncement(changes)
      assert.ok(Buffer.byteLength(text) < 8_000)
      if (text === '') assert.ok(Buffer.byteLength(JSON.stringify(changes)) > 7_000)
      else
        assert.deepEqual(
          parseAnnouncement(text),
          changes.toSorted((a, b) => a.sequence - b.sequence),
        )
    }),
  )
  for (const text of [
    '',
    '{}',
    'null',
    '[1]',
    '[[1,"a","b","other","id","hash"]]',
    '[["1","a","b","key","",""]]',
  ])
    assert.equal(parseAnnouncement(text), undefined, text)
})

test('a node has reached a change at its position, or at a later one that the log contains', () => {
  const position = { sequence: 7, checksum: 'a' }
  const at = (sequence: number, checksum: string, isInLog: boolean) =>
    hasReached({ sequence, checksum, isInLog }, position)
  assert.deepEqual([at(7, 'a', true), at(7, 'a', false), at(8, 'x', true)], [true, true, true])
  assert.deepEqual([at(7, 'b', true), at(8, 'x', false), at(6, 'a', true)], [false, false, false])
})

async function open(t: Test) {
  const { services } = await openTestServices(t, 'postgres')
  const { id: workspaceId } = await createWorkspace(services, operator, { slug: 'acme' })
  const follower = await startFollower(t, services)
  return { services, follower, ctx: { ...services, actor: operator, workspaceId } }
}

/** The control connection, whose reads fail while the condition holds. */
function failingWhile({ controlConnection }: Store, isFailing: () => boolean): Db {
  const failing: KyselyPlugin = {
    transformQuery: ({ node }) => node,
    async transformResult({ result }) {
      if (isFailing()) throw new Error('connection lost')
      return result
    },
  }
  // The type offers only reads.
  return (controlConnection.db as Kysely<unknown>).withPlugin(failing) as unknown as Db
}

test('a revocation does not wait for a node that hangs while it creates a key', async (t) => {
  const { services, ctx } = await open(t)
  const { id } = await createKey(ctx)
  const locked = Promise.withResolvers<void>()
  const revoked = Promise.withResolvers<void>()
  const hanging = services.store.transaction(async (db) => {
    await sql`set local idle_in_transaction_session_timeout = 0`.execute(db)
    await lockWorkspace(db, ctx.workspaceId)
    locked.resolve()
    await revoked.promise
  })
  await locked.promise
  await revoke(ctx, id).finally(revoked.resolve)
  await hanging
})

test('concurrent revocations share announcements', async (t) => {
  const { services, ctx, follower } = await open(t)
  const keys = await Promise.all(Array.from({ length: 20 }, () => createKey(ctx)))
  let announcements = 0
  services.store.onNotify(() => {
    announcements += 1
  })
  await Promise.all(keys.map(({ id }) => revoke(ctx, id)))
  assert.equal(follower.position().sequence, 20)
  assert.ok(announcements < 20, `${announcements} announcements`)
})

test('a forged announcement is undone by the next poll, and does not end the wait of a revocation', async (t) => {
  const { services, ctx, follower } = await open(t)
  const key = await createKey(ctx)
  let resets = 0
  follower.subscribe({
    onChange() {},
    onReset() {
      resets += 1
    },
  })
  const { sequence, checksum } = follower.position()
  const forged = { sequence: sequence + 1, checksum: 'forged', previousChecksum: checksum, expiresAt: null }
  await services.store.notify(encodeAnnouncement([{ ...forged, kind: 'key', subjectId: 'x', hash: 'x' }]))
  await until('it was applied', () => follower.position().checksum === 'forged')
  await revoke(ctx, key.id)
  assert.equal(resets, 1)
  assert.notEqual(follower.position().checksum, 'forged')
})

test('announcements that arrive out of order or twice are applied in order, without a poll', async (t) => {
  const { follower } = await open(t)
  await until('it is up to date', () => follower.isUpToDate())
  const applied: string[] = []
  let resets = 0
  follower.subscribe({
    onChange: ({ checksum }) => applied.push(checksum),
    onReset() {
      resets += 1
    },
  })
  // They are not in the log, so a poll would not find them.
  const { sequence, checksum } = follower.position()
  const changes = ['a', 'b', 'c'].map((mark, index, marks) => ({
    sequence: sequence + index + 1,
    checksum: mark,
    previousChecksum: marks[index - 1] ?? checksum,
    kind: 'key' as const,
    subjectId: 'x',
    hash: 'x',
  }))
  for (const index of [0, 2, 1, 2]) follower.receive(changes[index] as LinkedChange)
  await until('a poll has undone them', () => resets > 0)
  assert.deepEqual(applied, ['a', 'b', 'c'])
})

test('the acknowledgment of an announced change renews the lease, that of a forged one does not', async (t) => {
  const { services, ctx } = await open(t)
  const { store } = services
  let isFailing = false
  const controlConnection = { ...store.controlConnection, db: failingWhile(store, () => isFailing) }
  const follower = await startFollower(t, { ...services, store: { ...store, controlConnection } }, () => {})
  await until('it is up to date', () => follower.isUpToDate())
  // It cannot poll from now on.
  isFailing = true
  for (const end = performance.now() + 1.5 * LEASE_MS; performance.now() < end; ) {
    const { id } = await createKey(ctx)
    await revoke(ctx, id)
    assert.ok(follower.isUpToDate())
  }
  await until('a lease ends without a valid announcement', async () => {
    const { sequence, checksum } = follower.position()
    const forged = { sequence: sequence + 1, checksum: 'forged', previousChecksum: checksum, expiresAt: null }
    follower.receive({ ...forged, kind: 'key', subjectId: 'x', hash: 'x' })
    return !follower.isUpToDate()
  })
})

test('a wait that cannot read the nodes lasts for the longest lease that was read before', async (t) => {
  const { services } = await openTestServices(t, 'postgres')
  const { store } = services
  const position = await readHead(store.db)
  const node = { id: 'node_x', host: 'x', pid: 1, version: '0', started_at: 0, heartbeat_at: 0 }
  await store.transaction((db) => insertNode(db, { ...node, lease_ms: 2_300, position }))
  let isFailing = false
  const db = failingWhile(store, () => isFailing)
  const { wait } = createPropagationWait({ ...store, controlConnection: { ...store.controlConnection, db } })
  await wait(position)
  isFailing = true
  const startedAt = performance.now()
  await wait(position)
  assert.ok(performance.now() - startedAt >= 2_350, `waited ${performance.now() - startedAt} ms`)
})

for (const [setting, expected] of [
  ['off', 'on'],
  ['local', 'local'],
  ['remote_apply', 'remote_apply'],
])
  test(`commits wait for the disk: synchronous_commit = ${setting} becomes ${expected}`, async (t) => {
    const url = new URL(await createMigratedDatabase(t, 'postgres'))
    const options = `${url.searchParams.get('options') ?? ''} -c synchronous_commit=${setting}`
    url.searchParams.set('options', options)
    const store = openStore(
      { engine: 'postgres', url: url.href },
      { onLostConnection() {}, onStorageFault() {}, onStorageRecovered() {} },
    )
    atEnd(t, () => store.close())
    for (const connection of [store, store.controlConnection]) {
      const { rows } = await connection.transaction((db) => sql`show synchronous_commit`.execute(db))
      assert.deepEqual(rows, [{ synchronous_commit: expected }])
    }
  })
