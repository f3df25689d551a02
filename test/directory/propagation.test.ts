// How changes are announced to the other nodes, and when a node counts as up to date.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { encodeAnnouncement, parseAnnouncement } from '../../src/directory/announcement.ts'
import { startChangeFollower } from '../../src/directory/change-follower.ts'
import { hasReached } from '../../src/directory/propagation-wait.ts'
import { createKey, revoke } from '../../src/domain/keys.ts'
import { createWorkspace } from '../../src/domain/workspaces.ts'
import type { LinkedChange } from '../../src/store/change-log.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import { openTestServices, operator } from '../support/server.ts'
import { until } from '../support/until.ts'

const change: fc.Arbitrary<LinkedChange> = fc.record<LinkedChange>(
  {
    sequence: fc.nat(),
    checksum: fc.string(),
    previousChecksum: fc.string(),
    kind: fc.constantFrom('key', 'edge', 'workspace'),
    subjectId: fc.string(),
    hash: fc.string(),
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
    hasReached({ sequence, checksum, isInLog, leaseMs: 1 }, position)
  assert.deepEqual([at(7, 'a', true), at(7, 'a', false), at(8, 'x', true)], [true, true, true])
  assert.deepEqual([at(7, 'b', true), at(8, 'x', false), at(6, 'a', true)], [false, false, false])
})

async function open(t: Test) {
  const { services } = await openTestServices(t, 'postgres')
  atEnd(t, () => services.store.close())
  const { id: workspaceId } = await createWorkspace(services, operator, { slug: 'acme' })
  const node = { id: services.ids('node'), host: 'here', pid: process.pid, version: '0' }
  const follower = await startChangeFollower(services.store, services.clock, node, {
    onFailure: (error) => assert.fail(String(error)),
    onRecovery() {},
  })
  atEnd(t, () => follower.deregister())
  return { services, follower, ctx: { ...services, actor: operator, workspaceId } }
}

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
  const forged = { sequence: sequence + 1, checksum: 'forged', previousChecksum: checksum }
  await services.store.notify(encodeAnnouncement([{ ...forged, kind: 'key', subjectId: 'x', hash: 'x' }]))
  await until('it was applied', () => follower.position().checksum === 'forged')
  await revoke(ctx, key.id)
  assert.equal(resets, 1)
  assert.notEqual(follower.position().checksum, 'forged')
})
