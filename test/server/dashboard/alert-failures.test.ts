// Alerts when the database fails, a node stops or an edge reports again meanwhile: none is lost or wrong.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hashSecret } from '../../../src/lib/credentials/secret.ts'
import { MINUTE_MS } from '../../../src/lib/time.ts'
import { createKey, revoke } from '../../../src/server/domain/keys/lifecycle.ts'
import type { NoticeEmail } from '../../../src/server/domain/notices/mails.ts'
import { createWorkspace } from '../../../src/server/domain/workspaces/manage.ts'
import { addMember } from '../../support/accounts/users.ts'
import { operator, rename, serve } from '../../support/api/server.ts'
import type { Test } from '../../support/cleanup.ts'
import { type Engine, engines } from '../../support/databases/create.ts'
import { readRows } from '../../support/databases/rows.ts'
import { addTunnelEdge, tunnelOf } from '../../support/edges/open-tunnels.ts'
import { alertEnv, alertNode, OPERATOR, silenceEdge } from '../../support/events/alerts.ts'
import { pluck } from '../../support/pluck.ts'

/** A server with an edge that has tunnels of two workspaces, and a revoked key. */
async function prepare(t: Test, engine: Engine) {
  const server = await serve(t, { engine, env: alertEnv })
  const { ctx, services, workspace } = server
  const ann = await addMember(server, 'Ann', 'owner')
  const other = await createWorkspace(services, operator, { slug: 'other', provisioned: true })
  const otherKey = await createKey({ ...ctx, workspaceId: other.id })
  const edge = await addTunnelEdge(server, 'fra-1')
  const tunnels = [tunnelOf(server), tunnelOf(server, { workspace: 'other', keyId: otherKey.id })]
  for (const tunnel of tunnels) assert.equal((await edge.claim(tunnel)).granted, true)
  await edge.sync({ changed: tunnels })
  const key = await createKey(ctx, { label: 'leaked' })
  await revoke(ctx, key.id)
  const emails: NoticeEmail[] = []
  const silentNotices = async () =>
    pluck(await readRows(services, 'notices', { kind: 'edge-silent' }), 'workspace_id')
  return {
    server,
    edge,
    emails,
    silentNotices,
    workspaceIds: [workspace.id, other.id].toSorted(),
    hash: hashSecret(key.token),
    subjects: () => emails.splice(0).map(({ to, subject }) => `${to === ann.email ? 'Ann' : to}: ${subject}`),
  }
}

const TO_OPERATOR = `${OPERATOR}: Adit edge fra-1 is not reporting`
const TO_OWNER = 'Ann: A workspace on Adit has tunnels on an edge that is not reporting'
const KEY_USED = 'Ann: A workspace on Adit has high traffic from an inactive API key'

for (const engine of engines) {
  test(`${engine}: alerts about an edge are one transaction for each workspace, and continue after a stop`, async (t) => {
    const { server, edge, emails, silentNotices, workspaceIds, subjects } = await prepare(t, engine)
    await silenceEdge(server, edge.id, 6)
    const steps = [true, false, false]
    const stopped = alertNode(server, emails, { proceed: async () => steps.shift() ?? false })
    await stopped.run()
    assert.deepEqual(await silentNotices(), workspaceIds.slice(0, 1))
    assert.deepEqual([stopped.silent, subjects()], [[], []])
    const next = alertNode(server, emails)
    await next.run()
    assert.deepEqual((await silentNotices()).toSorted(), workspaceIds)
    assert.deepEqual(next.silent, ['fra-1'])
    assert.deepEqual(subjects().toSorted(), [TO_OWNER, TO_OPERATOR].toSorted())
  })

  test(`${engine}: an edge that reports again meanwhile gets no further alerts`, async (t) => {
    const { server, edge, emails, silentNotices, workspaceIds, subjects } = await prepare(t, engine)
    await silenceEdge(server, edge.id, 6)
    let calls = 0
    const node = alertNode(server, emails, {
      async proceed() {
        calls += 1
        if (calls === 2) await silenceEdge(server, edge.id, 0)
        return true
      },
    })
    await node.run()
    assert.deepEqual(await silentNotices(), workspaceIds.slice(0, 1))
    assert.deepEqual(node.silent, [])
    assert.ok(!subjects().includes(TO_OPERATOR))
  })

  test(`${engine}: edges could not report while the database was down, so that is no alert`, async (t) => {
    const { server, edge, emails, silentNotices, subjects } = await prepare(t, engine)
    await silenceEdge(server, edge.id, 6)
    await alertNode(server, emails, { databaseUpForMs: () => 4 * MINUTE_MS }).run()
    assert.deepEqual([await silentNotices(), subjects()], [[], []])
    await alertNode(server, emails, { databaseUpForMs: () => 5 * MINUTE_MS }).run()
    assert.equal(subjects().length, 2)
  })

  test(`${engine}: if rejected keys cannot be written, they are later, and other alerts arrive`, async (t) => {
    const { server, edge, emails, hash, subjects } = await prepare(t, engine)
    const node = alertNode(server, emails)
    for (let attempt = 0; attempt < 100; attempt++) node.rejections.record(hash)
    await silenceEdge(server, edge.id, 6)
    await rename(server, 'key_rejections', 'elsewhere')
    await assert.rejects(node.run())
    assert.deepEqual(subjects().toSorted(), [TO_OWNER, TO_OPERATOR].toSorted())
    await rename(server, 'elsewhere', 'key_rejections')
    await node.run()
    assert.deepEqual(subjects(), [KEY_USED])
  })

  test(`${engine}: rejected uses of a key count for the hour in which they were`, async (t) => {
    const { server, emails, hash, subjects } = await prepare(t, engine)
    let now = Date.parse('2026-03-01T10:59:59Z')
    const node = alertNode(server, emails, { clock: () => now })
    for (let attempt = 0; attempt < 60; attempt++) node.rejections.record(hash)
    now += 2_000
    for (let attempt = 0; attempt < 60; attempt++) node.rejections.record(hash)
    await node.run()
    assert.deepEqual(subjects(), [])
    const late = alertNode(server, emails, { clock: () => now - 2_000 })
    late.rejections.record(hash)
    await late.run()
    for (let attempt = 0; attempt < 40; attempt++) node.rejections.record(hash)
    await node.run()
    assert.deepEqual(subjects(), [KEY_USED])
  })
}
