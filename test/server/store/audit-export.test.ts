// Exports of the audit log: every entry once, in whatever order transactions commit.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { sql } from 'kysely'
import { DAY_MS } from '../../../src/lib/time.ts'
import { recordFailedSignIn } from '../../../src/server/domain/accounts/sign-ins.ts'
import { writeAudit } from '../../../src/server/domain/audit/entries.ts'
import { deleteAuditBefore, exportAllAudit } from '../../../src/server/domain/audit/export-all.ts'
import type { Services } from '../../../src/server/domain/context.ts'
import { createIds, firstIdSince } from '../../../src/server/domain/ids.ts'
import { openTestServices, operator } from '../../support/api/server.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { connectPostgres, type Engine, engines } from '../../support/databases/create.ts'

async function open(t: Test, engine: Engine) {
  const { services: opened, database } = await openTestServices(t, engine)
  const clock = { now: Date.now() }
  const services: Services = {
    ...opened,
    clock: () => clock.now,
    ids: createIds(() => clock.now, opened.random),
  }
  const write = (id: string) => services.store.transaction((db) => writeEntry(db, services, id))
  const exportSince = async (since?: string, skipDeleted = false) => {
    const entries = []
    const options = { since: since === undefined ? undefined : Number(since), skipDeleted }
    for await (const slice of exportAllAudit(services, operator, options)) entries.push(...slice)
    return entries
  }
  return { services, database, clock, write, exportSince }
}

type Exported = Awaited<ReturnType<Awaited<ReturnType<typeof open>>['exportSince']>>

const writeEntry = (db: Parameters<typeof writeAudit>[0], services: Services, id: string) =>
  writeAudit(db, services, { workspaceId: null, actor: operator, action: 'edge.created', target: { id } })

/** Without the entries of exports. */
const listTargets = (entries: Exported) =>
  entries.filter(({ action }) => action !== 'audit.exported').map(({ target }) => target.id)

const lastCursor = (entries: Exported) => entries.at(-1)?.cursor as string

for (const engine of engines) {
  test(`${engine}: an export continues after its cursor, and is recorded in the log unless there is nothing new`, async (t) => {
    const { write, exportSince } = await open(t, engine)
    await write('a')
    await write('b')
    const first = await exportSince()
    assert.deepEqual(listTargets(first), ['a', 'b'])
    assert.equal(first.at(-1)?.action, 'audit.exported')
    assert.deepEqual(await exportSince(lastCursor(first)), [])
    await write('c')
    const next = await exportSince(lastCursor(first))
    assert.deepEqual(
      next.map(({ action, target, changes }) => [action, target.id, changes]),
      [
        ['edge.created', 'c', {}],
        ['audit.exported', 'audit', { since: [null, lastCursor(first)] }],
      ],
    )
    assert.deepEqual(listTargets(await exportSince(first[0]?.cursor)), ['b', 'c'], 'from any entry on')
    await assert.rejects(exportSince('9007199254740991'), /ahead of this audit log/)
  })

  test(`${engine}: random transactions, rollbacks and exports: each committed entry is exported once`, async (t) => {
    const { services, exportSince } = await open(t, engine)
    const committed: string[] = []
    let isOver = false
    const pause = async () => {
      for (let turns = Math.random() * 20; turns > 0; turns -= 1) await turn()
    }
    const writers = Array.from({ length: 6 }, async (_, writer) => {
      for (let number = 0; number < 20; number += 1) {
        const ids = Array.from({ length: 1 + (number % 3) }, (_, row) => `${writer}-${number}-${row}`)
        const done = services.store.transaction(async (db) => {
          for (const id of ids) {
            await writeEntry(db, services, id)
            if (engine === 'postgres') await pause()
          }
          if (number % 5 === 0) throw new Error('rolled back')
        })
        await done.then(
          () => committed.push(...ids),
          (error) => assert.equal(error.message, 'rolled back'),
        )
        await pause()
      }
    })
    const exporters = Array.from({ length: 3 }, async () => {
      const exported: Exported = []
      for (let isLast = false; ; isLast = isOver) {
        exported.push(...(await exportSince(exported.at(-1)?.cursor)))
        if (isLast) return exported
        await pause()
      }
    })
    await Promise.all(writers)
    isOver = true
    for (const exported of await Promise.all(exporters)) {
      assert.deepEqual(listTargets(exported).toSorted(), committed.toSorted())
      const positions = exported.map(({ cursor }) => Number(cursor))
      assert.deepEqual(
        positions,
        [...new Set(positions)].toSorted((a, b) => a - b),
      )
    }
  })

  test(`${engine}: an exported entry does not change, repeated failures make another`, async (t) => {
    const { services, exportSince } = await open(t, engine)
    const user = {
      id: services.ids('usr'),
      name: 'Ann',
      email: 'ann@example.com',
      email_verified: 1,
      two_factor_enabled: 0,
      created_at: 1,
      updated_at: 1,
      disabled_at: null,
    }
    await services.store.transaction((db) => db.insertInto('users').values(user).execute())
    const fail = () =>
      services.store.transaction((db) =>
        recordFailedSignIn(db, services, { user, detail: 'password', address: '192.0.2.7' }),
      )
    const listCounts = (entries: Exported) =>
      entries.filter(({ action }) => action === 'user.sign-in-failed').map(({ count }) => count)
    await fail()
    await fail()
    const first = await exportSince()
    assert.deepEqual(listCounts(first), [2])
    await Promise.all([fail(), fail(), fail()])
    assert.deepEqual(listCounts(await exportSince(lastCursor(first))), [3])
    assert.deepEqual(listCounts(await exportSince()), [2, 3])
  })

  test(`${engine}: a cursor before entries that retention has deleted is rejected`, async (t) => {
    const { services, clock, write, exportSince } = await open(t, engine)
    const deleteOld = () =>
      services.store.transaction((db) =>
        deleteAuditBefore(db, services, firstIdSince('aud', clock.now - 30 * DAY_MS), 100),
      )
    await write('exported')
    const first = await exportSince()
    await write('never exported')
    clock.now += 40 * DAY_MS
    await write('new')
    await deleteOld()
    await assert.rejects(exportSince(lastCursor(first)), /deleted by retention .* --skip-deleted/s)
    const rest = await exportSince(lastCursor(first), true)
    assert.deepEqual(listTargets(rest), ['new'])
    await deleteOld()
    assert.deepEqual(listTargets(await exportSince(lastCursor(rest))), [], 'nothing is missing after it')
    assert.deepEqual(listTargets(await exportSince()), ['new'])
  })

  test(`${engine}: cursors stay valid after the database was restored from a backup`, async (t) => {
    const { services, clock, write, exportSince } = await open(t, engine)
    const tables = ['audit_log', 'audit_export'] as const
    await write('in the backup')
    await exportSince()
    const backup = await Promise.all(
      tables.map((table) => services.store.db.selectFrom(table).selectAll().execute()),
    )
    clock.now += 5
    await write('lost')
    const before = await exportSince()
    assert.deepEqual(listTargets(before), ['in the backup', 'lost'])
    clock.now += 60_000
    await services.store.transaction(async (db) => {
      for (const [index, table] of tables.entries()) {
        await db.deleteFrom(table).execute()
        await db
          .insertInto(table)
          .values(backup[index] as never)
          .execute()
      }
    })
    assert.deepEqual(await exportSince(lastCursor(before)), [])
    for (let number = 0; number < 20; number += 1) await write(`new ${number}`)
    assert.equal(listTargets(await exportSince(lastCursor(before))).length, 20)
  })
}

test('postgres: an entry that is committed after a later one was exported is not missed', async (t) => {
  const { services, write, exportSince } = await open(t, 'postgres')
  const written = Promise.withResolvers<void>()
  const commit = Promise.withResolvers<void>()
  const slow = services.store.transaction(async (db) => {
    await writeEntry(db, services, 'slow')
    written.resolve()
    await commit.promise
  })
  await written.promise
  await write('fast')
  const first = await exportSince()
  assert.deepEqual(listTargets(first), ['fast'])
  commit.resolve()
  await slow
  const next = await exportSince(lastCursor(first))
  assert.deepEqual(listTargets(next), ['slow'])
  assert.ok((next[0]?.id ?? '') < (first[0]?.id ?? ''), 'its id is lower')
})

test('postgres: a first export reads each entry of a large log a few times, however much it has exported', async (t) => {
  const { services, database, exportSince } = await open(t, 'postgres')
  const { store } = services
  const ENTRIES = 15_000
  // Dead versions of entries stay in the index, as with the open transaction below.
  await sql`alter table audit_log set (autovacuum_enabled = false)`.execute(store.db)
  atEnd(t, () => sql`alter table audit_log reset (autovacuum_enabled)`.execute(store.db))
  await sql`insert into audit_log (id, at, actor_kind, actor_id, action, target_id)
    select 'aud_' || lpad(n::text, 26, '0'), 1, 'operator', 'root', 'edge.created', n::text
    from generate_series(1, ${sql.lit(ENTRIES)}) as n`.execute(store.db)
  await sql`analyze audit_log`.execute(store.db)
  const readEntries = async () => {
    await sql`select pg_stat_force_next_flush()`.execute(store.db)
    const { rows } = await sql<{ read: string }>`select sum(idx_tup_read) as read from pg_stat_user_indexes
      where relname = 'audit_log'`.execute(store.db)
    return Number(rows[0]?.read)
  }
  const before = await readEntries()
  const other = await connectPostgres(t, database)
  await other.query('begin isolation level repeatable read')
  await other.query('select from audit_log limit 1')
  assert.equal(listTargets(await exportSince()).length, ENTRIES)
  const read = (await readEntries()) - before
  t.diagnostic(`${read} index entries read`)
  assert.ok(read < 8 * ENTRIES, `${read}`)
})
