// The watch of quotas on a node: failures and changes during a check neither lose an alert nor block others.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Kysely, KyselyPlugin } from 'kysely'
import { startOfDay, startOfMonth } from '../../../../src/lib/time.ts'
import type { Services } from '../../../../src/server/domain/context.ts'
import { startQuotaWatch } from '../../../../src/server/domain/quotas/watch.ts'
import { createWorkspace } from '../../../../src/server/domain/workspaces/manage.ts'
import { setQuotas } from '../../../../src/server/domain/workspaces/quotas.ts'
import type { Tables } from '../../../../src/server/store/engine/tables.ts'
import { createAppliedChanges } from '../../../../src/server/verification/applied-changes.ts'
import { openTestServices, operator } from '../../../support/api/server.ts'
import { atEnd, type Test } from '../../../support/cleanup.ts'
import { type Engine, engines } from '../../../support/databases/create.ts'
import { readRows } from '../../../support/databases/rows.ts'
import { addEndpoint, deliveriesOf } from '../../../support/events/webhooks.ts'
import { until } from '../../../support/until.ts'

/** A node without its server, and functions on its database. */
async function openNode(t: Test, engine: Engine) {
  const { services: opened } = await openTestServices(t, engine)
  const changes = createAppliedChanges()
  const services: Services = { ...opened, afterChange: changes.apply }
  const failures: unknown[] = []
  return {
    services,
    changes,
    failures,
    async addWorkspace(slug: string, quotas: Parameters<typeof setQuotas>[3]) {
      const { id } = await createWorkspace(services, operator, { slug })
      await setQuotas(services, operator, slug, quotas)
      return id
    },
    use: (workspaceId: string, usage: { requests?: bigint; bytes_in?: bigint }, at = Date.now()) =>
      services.store.transaction((db) =>
        db
          .insertInto('usage_days')
          .values({
            ...{ workspace_id: workspaceId, day: startOfDay(at), last_seen: null },
            ...{ requests: 0n, bytes_in: 0n, bytes_out: 0n, events: 0n, ...usage },
          } as never)
          .onConflict((conflict) => conflict.columns(['workspace_id', 'day']).doUpdateSet(usage))
          .execute(),
      ),
    watch(given: Partial<Services> = {}) {
      const watch = startQuotaWatch(
        { ...services, ...given },
        { follower: changes, onFailure: (error) => failures.push(error), onRecovery() {} },
      )
      atEnd(t, watch.stop)
      return (...ids: string[]) => watch.noteReport(ids.map((workspaceId) => ({ workspaceId })))
    },
    levelOf: async (id: string) => (await readRows(services, 'workspaces', { id }))[0]?.usage_level,
  }
}

for (const engine of engines) {
  test(`${engine}: an alert that could not be created is created by the next check`, async (t) => {
    const node = await openNode(t, engine)
    const id = await node.addWorkspace('acme', { bytes: 1_000, requests: 10 })
    const endpoint = await addEndpoint(node.services, id)
    let canRecord = true
    const ids: Services['ids'] = (prefix) => {
      if (prefix === 'evt' && !canRecord) throw new Error('injected')
      return node.services.ids(prefix)
    }
    const report = node.watch({ ids })
    const alerts = async () =>
      (await deliveriesOf(node.services, endpoint)).map(({ body }) => [body.type, body.data.quota])
    await node.use(id, { bytes_in: 900n })
    report(id)
    await until('the first alert', async () => (await alerts()).length === 1)
    canRecord = false
    await node.use(id, { requests: 9n })
    report(id)
    await until('a failure', () => node.failures.length === 1)
    canRecord = true
    await until('the second alert', async () => (await alerts()).length === 2, 5_000)
    assert.deepEqual(await alerts(), [
      ['quota.near', 'bytes'],
      ['quota.near', 'requests'],
    ])
  })

  test(`${engine}: a workspace whose check fails does not block others`, async (t) => {
    const node = await openNode(t, engine)
    const broken = await node.addWorkspace('broken', { bytes: 1_000 })
    const other = await node.addWorkspace('other', { bytes: 1_000 })
    await addEndpoint(node.services, broken)
    const report = node.watch({
      ids: (prefix) => {
        if (prefix === 'evt') throw new Error('injected')
        return node.services.ids(prefix)
      },
    })
    for (const id of [broken, other]) await node.use(id, { bytes_in: 1_000n })
    report(broken, other)
    await until('the level', async () => (await node.levelOf(other)) === 'reached', 5_000)
    assert.equal(await node.levelOf(broken), null)
    assert.equal(node.failures.length, 1, 'only the first of several failures')
  })

  test(`${engine}: changes of keys during a check do not delay it`, async (t) => {
    const node = await openNode(t, engine)
    const id = await node.addWorkspace('acme', { bytes: 1_000 })
    await node.use(id, { bytes_in: 800n })
    let sequence = 1_000_000
    const changeDuringQuery: KyselyPlugin = {
      transformQuery: ({ node }) => node,
      async transformResult({ result }) {
        sequence += 1
        node.changes.apply({ kind: 'key-revoked', subjectId: 'key_1', sequence, checksum: '' } as never)
        return result
      },
    }
    const { store } = node.services
    const db = (store.db as Kysely<Tables>).withPlugin(changeDuringQuery)
    const report = node.watch({ store: { ...store, db } })
    report(id)
    await until('the level', async () => (await node.levelOf(id)) === 'near', 5_000)
  })

  test(`${engine}: nodes check a workspace whose quotas a command with other settings has changed`, async (t) => {
    const node = await openNode(t, engine)
    const id = await node.addWorkspace('acme', { bytes: 2_000 })
    const endpoint = await addEndpoint(node.services, id)
    await node.use(id, { bytes_in: 1_000n })
    const { services } = node
    const { limits } = services
    node.watch({ limits: { ...limits, quotas: { ...limits.quotas, bytes: 1_000 } } })
    const ids: Services['ids'] = (prefix) => {
      assert.notEqual(prefix, 'evt', 'the command does not create alerts')
      return services.ids(prefix)
    }
    await setQuotas({ ...services, ids }, operator, 'acme', { bytes: 900 })
    await until('an alert', async () => (await deliveriesOf(services, endpoint)).length === 1)
    await setQuotas({ ...services, ids }, operator, 'acme', { bytes: 'default' })
    await until('the level', async () => (await node.levelOf(id)) === 'reached')
    await until('its alert', async () => (await deliveriesOf(services, endpoint)).length === 2)
  })
}

test('after a clock that was in the next month for a while, the quota of this month is enforced again', async (t) => {
  const node = await openNode(t, 'sqlite')
  const clock = { now: Date.now(), reads: 0 }
  const id = await node.addWorkspace('acme', { bytes: 1_000 })
  const report = node.watch({
    clock: () => {
      clock.reads += 1
      return clock.now
    },
  })
  const levelIs = (level: string | null) => async () => (await node.levelOf(id)) === level
  await node.use(id, { bytes_in: 1_000n })
  report(id)
  await until('the quota is reached', levelIs('reached'), 5_000)
  clock.now = startOfMonth(Date.now(), 1)
  await node.use(id, { bytes_in: 900n }, clock.now)
  report(id)
  await until('the level of the next month', levelIs('near'), 5_000)
  // The change of the level causes another check.
  const { reads } = clock
  await until('that check', () => clock.reads > reads, 5_000)
  clock.now = Date.now()
  await until('the level of this month', levelIs('reached'), 20_000)
})
