// The maintenance job: what it deletes and keeps, its lease, and how it ends.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Kysely, sql } from 'kysely'
import { DAY_MS, startOfDay } from '../../../src/lib/time.ts'
import type { Services } from '../../../src/server/domain/context.ts'
import { nextBatchSize } from '../../../src/server/domain/deletion-batches.ts'
import { firstIdSince } from '../../../src/server/domain/ids.ts'
import { type Deleted, runNow, startMaintenance } from '../../../src/server/domain/maintenance/job.ts'
import type { Tables } from '../../../src/server/store/engine/tables.ts'
import { deleteExpired } from '../../../src/server/store/maintenance/retention.ts'
import { acquireLease, updateLease } from '../../../src/server/store/maintenance/state.ts'
import { readDays } from '../../../src/server/store/usage/commit.ts'
import { openTestServices } from '../../support/api/server.ts'
import { mergeReport } from '../../support/api/usage.ts'
import type { Test } from '../../support/cleanup.ts'
import { type Engine, engines } from '../../support/databases/create.ts'
import { commitWhenBlocked, until } from '../../support/until.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

async function open(t: Test, engine: Engine): Promise<Services> {
  const { services } = await openTestServices(t, engine)
  return services
}

const tunnel = {
  tunnel_id: 'tun_1',
  sequence: 1,
  workspace_id: 'ws_1',
  type: 'http',
  pool: 0,
  url: 'https://x',
  key_id: 'tok_1',
  client_address: '192.0.2.7',
  opened_at: 1,
  requests: 0,
  bytes_in: 0,
  bytes_out: 0,
  streams: 0,
}

/** Rows of each age, where the id says whether the row stays. */
async function fill({ store, clock }: Services) {
  const now = clock()
  const today = startOfDay(now)
  const insert = (table: string, row: Record<string, string | number | bigint | null>) =>
    store.transaction((db) =>
      db
        .insertInto(table as never)
        .values(row as never)
        .execute(),
    )
  const user = { name: 'Ann', email: 'ann@example.com', email_verified: 1, created_at: 1, updated_at: 1 }
  await insert('users', { id: 'usr_1', ...user })
  await insert('workspaces', { id: 'ws_1', slug: 'acme', name: 'Acme', created_at: 1 })
  for (const [id, expires_at] of Object.entries({ gone: now - MINUTE, kept: now + HOUR })) {
    await insert('sessions', { id, user_id: 'usr_1', token: id, created_at: 1, expires_at })
    await insert('verifications', { id, value: 'x', expires_at })
  }
  const link = { purpose: 'join', proves_email: 0, created_by: 'x', workspace_id: 'ws_1' }
  for (const [id, created_at, ended_at] of [
    ['gone', now - 2 * DAY_MS - HOUR, null],
    ['gone-ended', now - 2 * DAY_MS - HOUR, 5],
    ['kept', now - DAY_MS - HOUR, null],
    ['kept-ended', now - HOUR, 5],
  ] as const)
    await insert('links', { id, hash: id, ...link, created_at, expires_at: created_at + DAY_MS, ended_at })
  await insert('used_codes', { user_id: 'usr_1', hash: 'gone', at: now - 25 * HOUR })
  await insert('used_codes', { user_id: 'usr_1', hash: 'kept', at: now - MINUTE })
  for (const [id, created_at] of Object.entries({ gone: now - DAY_MS - MINUTE, kept: now - DAY_MS + MINUTE }))
    await insert('idempotent_responses', { workspace_id: 'ws_1', id, encrypted_response: '', created_at })
  const device = { device_name: '', address: '', created_at: 1, state: 'pending' }
  for (const [hash, expires_at] of Object.entries({ gone: now - HOUR - MINUTE, kept: now - MINUTE }))
    await insert('device_authorizations', { ...device, hash, user_code: hash, expires_at })
  for (const [id, created_at] of Object.entries({ gone: now - 41 * DAY_MS, kept: now - 39 * DAY_MS })) {
    await insert('notices', { kind: 'x', subject_id: id, dedup_key: '1d', workspace_id: 'ws_1', created_at })
    const mail = { user_id: 'usr_1', workspace_id: 'ws_1', attempts: 1 }
    await insert('notice_mails', { ...mail, digest_id: id, created_at })
    const alert = { kind: 'x', dedup_key: '1', detail: '{}', attempts: 0 }
    await insert('operator_alerts', { ...alert, subject_id: id, created_at })
    const delivery = { endpoint_id: 'x', id, sequence: 1, type: 'x', body: '{}', attempts: 0 }
    await insert('webhook_deliveries', { ...delivery, event_id: id, created_at: created_at + 10 * DAY_MS })
  }
  const endpoint = {
    workspace_id: 'ws_1',
    url: '',
    description: '',
    created_at: 1,
    secret: 'x',
    disabled_at: 1,
  }
  for (const [id, previous_secret_until] of Object.entries({ gone: now - MINUTE, kept: now + MINUTE })) {
    const queue = { last_position: 0, next_position: 1 }
    const previous = { previous_secret: id, previous_secret_until }
    await insert('webhook_endpoints', { ...endpoint, ...queue, ...previous, id })
  }
  for (const [edge_id, lease_until] of Object.entries({ gone: now - HOUR, kept: now - MINUTE })) {
    const load = { session: 's', sequence: 1, tunnels: 1, streams: 0 }
    await insert('edge_sessions', { edge_id, lease_until, ...load })
    await insert('open_tunnels', { ...tunnel, edge_id, id: edge_id, name: edge_id })
  }
  const name = { workspace_id: 'ws_1', created_at: 1 }
  await insert('tunnel_names', { ...name, name: 'gone', expires_at: now - MINUTE })
  await insert('tunnel_names', { ...name, name: 'kept', expires_at: now + HOUR })
  await insert('tunnel_names', { ...name, name: 'reserved', expires_at: null })
  await insert('tunnel_names', { ...name, name: 'rules', expires_at: now - MINUTE, access_rules: '{}' })
  // In use, so it is renewed instead.
  await insert('edge_sessions', {
    edge_id: 'live',
    lease_until: now + HOUR,
    session: 's',
    sequence: 1,
    tunnels: 1,
    streams: 0,
  })
  await insert('open_tunnels', { ...tunnel, edge_id: 'live', id: 'live', name: 'used' })
  await insert('tunnel_names', { ...name, name: 'used', expires_at: now - MINUTE })
  const change = { kind: 'key', subject_id: '', hash: '', checksum: '', previous_checksum: '' }
  for (const [sequence, at] of [
    [1, now - 2 * DAY_MS],
    // A node whose clock was behind wrote it between two others: deletion must not leave a gap.
    [2, now - DAY_MS + MINUTE],
    [3, now - 2 * DAY_MS],
    [4, now - HOUR],
    [5, now - 2 * DAY_MS],
    [6, now],
  ] as const)
    await insert('change_log', { sequence, ...change, at })
  const location = { edge_group: 'default', checksum: '', previous_checksum: '', opened: '[]', closed: '[]' }
  await insert('location_log', { sequence: 1, ...location, at: now - HOUR - MINUTE })
  await insert('location_log', { sequence: 2, ...location, at: now - HOUR + MINUTE })
  const zero = { requests: 7n, bytes_in: 0n, bytes_out: 0n, events: 0n }
  for (const daysAgo of [0, 35, 40, 41, 300]) {
    const day = today - daysAgo * DAY_MS
    await insert('usage_counters', { workspace_id: 'ws_1', day, edge_id: 'e', epoch: 'p', ...zero })
    await insert('usage_days', { workspace_id: 'ws_1', day, ...zero, peak_tunnels: 3 })
    await insert('usage_hours', { workspace_id: 'ws_1', hour: day, edge_id: 'f', open: '3' })
  }
  for (const daysAgo of [1, 100, 400]) {
    const at = now - daysAgo * DAY_MS
    const entry = { actor_kind: 'operator', actor_id: 'x', action: 'x', target_id: String(daysAgo) }
    await insert('audit_log', { id: firstIdSince('aud', at), workspace_id: 'ws_1', at, ...entry })
  }
  return { today }
}

async function column(services: Services, table: string, name: string): Promise<unknown[]> {
  const { rows } = await sql<{ value: unknown }>`
    select ${sql.ref(name)} as value from ${sql.table(table)} order by 1`.execute(services.store.db)
  return rows.map(({ value }) => value)
}

/** The wait between raising the floor and deleting is skipped. */
async function raiseFloorEarlier({ store, clock }: Services): Promise<void> {
  const floor = startOfDay(clock()) - 40 * DAY_MS
  await store.transaction((db) =>
    db.updateTable('maintenance').set({ usage_floor: floor, usage_floor_at: 0, usage_cursor: '' }).execute(),
  )
}

const never = new AbortController().signal

async function run(services: Services, auditRetentionDays?: number): Promise<Deleted> {
  const deleted: Deleted = {}
  const limits = { ...services.limits, auditRetentionDays }
  const result = await runNow(
    { ...services, limits },
    {
      signal: never,
      onDeleted(table, rows) {
        if (rows > 0) deleted[table] = (deleted[table] ?? 0) + rows
      },
    },
  )
  assert.deepEqual(result, { outcome: 'completed' })
  return deleted
}

for (const engine of engines) {
  test(`${engine}: rows past their retention are deleted, all others and the daily totals stay`, async (t) => {
    const services = await open(t, engine)
    const { today } = await fill(services)
    await raiseFloorEarlier(services)
    assert.deepEqual(await run(services), {
      sessions: 1,
      verifications: 1,
      links: 2,
      used_codes: 1,
      idempotent_responses: 1,
      device_authorizations: 1,
      notices: 1,
      notice_mails: 1,
      operator_alerts: 1,
      webhook_deliveries: 1,
      open_tunnels: 1,
      tunnel_names: 1,
      location_log: 1,
      change_log: 5,
      usage_counters: 2,
      usage_hours: 2,
    })
    assert.deepEqual(await column(services, 'open_tunnels', 'id'), ['kept', 'live'])
    assert.deepEqual(await column(services, 'tunnel_names', 'name'), ['kept', 'reserved', 'rules', 'used'])
    assert.deepEqual(await column(services, 'sessions', 'id'), ['kept'])
    assert.deepEqual(await column(services, 'verifications', 'id'), ['kept'])
    assert.deepEqual(await column(services, 'links', 'id'), ['kept', 'kept-ended'])
    assert.deepEqual(await column(services, 'used_codes', 'hash'), ['kept'])
    assert.deepEqual(await column(services, 'idempotent_responses', 'id'), ['kept'])
    assert.deepEqual(await column(services, 'device_authorizations', 'hash'), ['kept'])
    assert.deepEqual(await column(services, 'notices', 'subject_id'), ['kept'])
    assert.deepEqual(await column(services, 'notice_mails', 'digest_id'), ['kept'])
    assert.deepEqual(await column(services, 'operator_alerts', 'subject_id'), ['kept'])
    assert.deepEqual(await column(services, 'webhook_deliveries', 'event_id'), ['kept'])
    assert.deepEqual((await column(services, 'webhook_endpoints', 'previous_secret')).filter(Boolean), [
      'kept',
    ])
    assert.deepEqual(await column(services, 'change_log', 'sequence'), [6])
    assert.deepEqual(await column(services, 'location_log', 'sequence'), [2])
    const kept = [40, 35, 0].map((daysAgo) => today - daysAgo * DAY_MS)
    assert.deepEqual(await column(services, 'usage_counters', 'day'), kept)
    assert.deepEqual([...new Set(await column(services, 'usage_hours', 'hour'))], kept)
    assert.equal((await column(services, 'usage_days', 'day')).length, 5)
    assert.equal((await column(services, 'audit_log', 'id')).length, 3, 'the audit log is kept by default')
    assert.deepEqual(await run(services, 101), { audit_log: 1 })
    assert.deepEqual(await column(services, 'audit_log', 'target_id'), ['1', '100'])
    assert.deepEqual(await run(services), {}, 'nothing is left to delete')
  })

  test(`${engine}: more rows than a batch are deleted batch by batch`, async (t) => {
    const services = await open(t, engine)
    await raiseFloorEarlier(services)
    const { store } = services
    // 1,500 with the same time, which no batch can separate by the time alone.
    await store.transaction(async (db) => {
      await sql`with recursive n (i) as (select 1 union all select i + 1 from n where i < 3000)
        insert into verifications (id, value, expires_at)
        select 'v' || cast(i as text), 'x', case when i % 2 = 0 then 1000 else i end from n`.execute(db)
    })
    await store.transaction((db) =>
      sql`with recursive n (i) as (select 1 union all select i + 1 from n where i < 3000)
        insert into usage_hours (workspace_id, hour, edge_id, open)
        select 'ws_' || cast(i % 7 as text), 3600000, cast(i as text), '1' from n`.execute(db),
    )
    assert.deepEqual(await run(services), { verifications: 3000, usage_hours: 3000 })
  })

  test(`${engine}: a report for a counter that was deleted is rejected, whatever the clock of the node`, async (t) => {
    const services = await open(t, engine)
    const { store, clock } = services
    await fill(services)
    const day = startOfDay(clock()) - 50 * DAY_MS
    const figures = { bytesIn: 5n, bytesOut: 0n, events: 0n, lastSeen: null }
    const report = (requests: bigint, epoch: string) => ({
      edgeId: 'e',
      epoch,
      counters: [{ workspaceId: 'ws_1', day, requests, ...figures }],
      tunnels: [{ workspaceId: 'ws_1', minute: day, open: 2 }],
    })
    const total = async () => {
      const [row] = await readDays(store.db, 'ws_1', day, day)
      return [row?.requests, row?.peakTunnels]
    }
    // A node whose clock is far behind merges them; the times were checked before.
    assert.deepEqual(await mergeReport(store, report(7n, 'p1')), [])
    await raiseFloorEarlier(services)
    assert.deepEqual(await mergeReport(store, report(8n, 'p1')), [], 'a counter that exists stays exact')
    assert.deepEqual(await total(), [8n, 2])
    await run(services)
    for (const epoch of ['p1', 'p2'])
      assert.deepEqual(await mergeReport(store, report(9n, epoch)), [
        { workspaceId: 'ws_1', day, reason: 'too_old' },
      ])
    assert.deepEqual(await total(), [8n, 2])
  })

  test(`${engine}: one node at a time has the lease; it is taken over when it expires, and free when released`, async (t) => {
    const { store } = await open(t, engine)
    const leaseMs = 60_000
    const taken = await Promise.all(
      ['a', 'b', 'c', 'd'].map((owner) => acquireLease(store, { owner, leaseMs })),
    )
    assert.equal(taken.filter(Boolean).length, 1)
    const owner = 'abcd'[taken.findIndex(Boolean)] as string
    assert.equal(await acquireLease(store, { owner: 'e', leaseMs }), undefined)
    assert.equal(
      await acquireLease(store, { owner: 'e', leaseMs, force: true }),
      undefined,
      'a run is in progress',
    )
    assert.equal(await updateLease(store, { owner: 'e', dueInMs: 0 }), false)

    assert.equal(await updateLease(store, { owner, dueInMs: 5_000_000 }), true)
    assert.ok(await acquireLease(store, { owner, leaseMs }), 'a clock was wrong by more than an hour')
    assert.equal(await updateLease(store, { owner, dueInMs: 0 }), true)
    assert.ok(await acquireLease(store, { owner: 'e', leaseMs }), 'it has expired')
    assert.equal(await updateLease(store, { owner, dueInMs: 60_000 }), false, 'the former owner must stop')

    assert.equal(await updateLease(store, { owner: 'e', dueInMs: 60_000, release: true }), true)
    assert.equal(await acquireLease(store, { owner: 'f', leaseMs }), undefined, 'the next run is not due')
    assert.ok(await acquireLease(store, { owner: 'f', leaseMs, force: true }))
  })

  test(`${engine}: a run says whether it was completed, stopped, or not started`, async (t) => {
    const services = await open(t, engine)
    await fill(services)
    const { store } = services
    const setOwner = (owner: string) =>
      store.transaction((db) => db.updateTable('maintenance').set({ owner }).execute())
    const options = { signal: never, onDeleted() {} }

    assert.deepEqual(await runNow(services, { ...options, signal: AbortSignal.abort() }), {
      outcome: 'stopped',
    })

    // The lease is renewed every 15 seconds.
    let passedMs = 0
    const now = performance.now.bind(performance)
    t.mock.method(performance, 'now', () => now() + passedMs)
    let taken: Promise<unknown> | undefined
    const losing = {
      ...services,
      store: {
        ...store,
        async transaction<T>(work: Parameters<typeof store.transaction<T>>[0]): Promise<T> {
          await taken
          return store.transaction(work)
        },
      },
    }
    const lost = await runNow(losing, {
      ...options,
      onDeleted() {
        passedMs = 20_000
        taken ??= setOwner('other')
      },
    })
    assert.deepEqual(lost, { outcome: 'stopped' })
    assert.deepEqual(await runNow(services, options), { outcome: 'busy', owner: 'other' })

    // The other run ends after the lease was found to be taken.
    await raiseFloorEarlier(services)
    let ended: Promise<unknown> | undefined
    const db = (store.db as Kysely<Tables>).withPlugin({
      transformQuery: ({ node }) => node,
      async transformResult({ result }) {
        ended ??= setOwner('')
        await ended
        return result
      },
    })
    assert.deepEqual(await runNow({ ...services, store: { ...store, db } }, options), {
      outcome: 'completed',
    })
  })

  test(`${engine}: of several nodes one runs the job; it survives failures, and stops within a batch`, async (t) => {
    const services = await open(t, engine)
    await fill(services)
    const { store } = services
    const rename = (from: string, to: string) =>
      store.transaction((db) => db.schema.alterTable(from).renameTo(to).execute())
    await rename('verifications', 'elsewhere')
    const events: string[] = []
    const deleted: Deleted[] = []
    const nodes = ['a', 'b', 'c'].map((id) =>
      startMaintenance(services, {
        id,
        mail: undefined,
        databaseUpForMs: () => 0,
        pollIntervalMs: 20,
        events: {
          onDeleted: (rows) => deleted.push(rows),
          onFailure: () => events.push('failure'),
          onRecovery: () => events.push('recovery'),
        },
      }),
    )
    await until('it has failed', () => events.includes('failure'))
    assert.deepEqual([...deleted], [{ sessions: 1 }], 'what was deleted before the failure is logged')
    await rename('elsewhere', 'verifications')
    await raiseFloorEarlier(services)
    await store.transaction((db) => db.updateTable('maintenance').set({ due_at: 0 }).execute())
    await until('the rest is deleted', () => deleted.some((rows) => rows.usage_counters === 2))
    await Promise.all(nodes.map((node) => node.stop()))
    assert.deepEqual(events, ['failure', 'recovery'])
    assert.equal(deleted.length, 2, 'one node ran it')
    const row = await store.db.selectFrom('maintenance').selectAll().executeTakeFirstOrThrow()
    assert.deepEqual([row.owner, row.usage_cursor], ['', null])
  })
}

test('postgres: a row that is renewed while it would be deleted stays', async (t) => {
  const services = await open(t, 'postgres')
  const { store } = services
  await fill(services)
  const now = services.clock()
  for (const [table, id] of [
    ['sessions', 'id'],
    ['tunnel_names', 'name'],
  ] as const) {
    const renewal = sql`update ${sql.table(table)} set expires_at = ${now + HOUR} where ${sql.ref(id)} = 'gone'`
    await commitWhenBlocked(
      store,
      (tx) => renewal.execute(tx),
      () =>
        store.transaction(async (tx) => {
          // As for a large table.
          await sql`set local enable_seqscan = off`.execute(tx)
          return deleteExpired(tx, table, now, 10)
        }),
    )
    assert.ok((await column(services, table, id)).includes('gone'), table)
  }
})

test('a batch shrinks when it is slow, grows when it is fast, and stays within its limits', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 10, max: 1_000 }),
      fc.double({ min: 0, max: 500, noNaN: true }),
      (size, ms) => {
        const next = nextBatchSize(size, ms)
        assert.ok(Number.isInteger(next) && next >= 10 && next <= 1_000)
        if (ms > 25) assert.ok(next < size || next === 10)
        if (ms < 10) assert.ok(next > size || next === 1_000)
      },
    ),
  )
})
