// Converting the tunnel minutes of earlier versions to hours, while reports go on.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Store } from '../../../../src/server/store/engine/store.ts'
import { convertMinutes } from '../../../../src/server/store/usage/conversion.ts'
import { readDays } from '../../../../src/server/store/usage/read.ts'
import { resetDay } from '../../../../src/server/store/usage/reset.ts'
import { openTestServices } from '../../../support/api/server.ts'
import { mergeReport } from '../../../support/api/usage.ts'
import { atEnd } from '../../../support/cleanup.ts'
import { engines } from '../../../support/databases/create.ts'
import { createRandom } from '../../../support/random.ts'

const DAY = Date.parse('2026-03-01')
const MINUTE = 60_000

interface Minute {
  workspace_id: string
  minute: number
  edge_id: string
  open: number
}

/** As the previous version left them: the day has the peak of its minutes. */
async function fill(store: Store, rows: readonly Minute[]): Promise<void> {
  await store.transaction(async (db) => {
    await db.insertInto('usage_minutes').values(rows).execute()
    for (const workspace_id of new Set(rows.map((row) => row.workspace_id)))
      await db
        .insertInto('usage_days')
        .values({ workspace_id, day: DAY, peak_tunnels: peakOf(rows, workspace_id), last_seen: null })
        .execute()
  })
}

function peakOf(rows: readonly Minute[], workspace: string): number {
  const minutes = new Map<number, number>()
  for (const { workspace_id, minute, open } of rows)
    if (workspace_id === workspace) minutes.set(minute, (minutes.get(minute) ?? 0) + open)
  return Math.max(0, ...minutes.values())
}

function randomMinutes(): Minute[] {
  const random = createRandom('minutes')
  const minutes = Array.from({ length: 240 }, (_, index) => DAY + index * 6 * MINUTE)
  return ['a', 'b'].flatMap((workspace_id) =>
    ['x', 'y'].flatMap((edge_id) =>
      minutes
        .filter(() => random.chance(0.5))
        .map((minute) => ({ workspace_id, minute, edge_id, open: random.whole(0, 9) })),
    ),
  )
}

for (const engine of engines) {
  test(`${engine}: minutes are converted in batches, interrupted and repeated, and peaks stay`, async (t) => {
    const { services } = await openTestServices(t, engine)
    atEnd(t, () => services.store.close())
    const { store } = services
    const peak = async (workspace: string) =>
      (await readDays(store.db, workspace, DAY, DAY))[0]?.peakTunnels as number
    const rows = randomMinutes()
    await fill(store, rows)
    // Interrupted before the batch is deleted.
    const interrupted: Store = {
      ...store,
      transaction: (work) =>
        store.transaction(async (db) => {
          const before = await db.selectFrom('usage_minutes').select('minute').execute()
          const result = await work(db)
          const after = await db.selectFrom('usage_minutes').select('minute').execute()
          if (after.length < before.length) throw new Error('killed')
          return result
        }),
    }
    await assert.rejects(convertMinutes(interrupted, 100), /killed/)
    assert.equal((await store.db.selectFrom('usage_minutes').select('minute').execute()).length, rows.length)
    const before = { a: await peak('a'), b: await peak('b') }
    let converted = 0
    for (let count = -1; count !== 0; converted += count) {
      count = await convertMinutes(store, 100)
      assert.ok((await peak('a')) >= before.a, 'a peak never decreases')
      // A report for a converted or unconverted minute: the edge has more tunnels than it had.
      if (converted === 100)
        await mergeReport(store, {
          edgeId: 'x',
          epoch: 'e',
          counters: [],
          tunnels: [{ workspaceId: 'b', minute: DAY, open: 50 }],
        })
    }
    assert.equal(converted, rows.length)
    assert.deepEqual(await peak('a'), peakOf(rows, 'a'))
    const other = rows.find((row) => row.workspace_id === 'b' && row.edge_id === 'y' && row.minute === DAY)
    assert.equal(await peak('b'), 50 + (other?.open ?? 0), 'old and new minutes of the edges are summed')
    const hours = await store.db.selectFrom('usage_hours').select('edge_id').execute()
    assert.ok(hours.length <= 2 * 3 * 24)
  })

  test(`${engine}: a minute that the previous version raises during the conversion is not lost`, async (t) => {
    const { services } = await openTestServices(t, engine)
    atEnd(t, () => services.store.close())
    const { store } = services
    await fill(store, [{ workspace_id: 'a', minute: DAY, edge_id: 'x', open: 3 }])
    let isRaised = false
    const racing: Store = {
      ...store,
      async transaction(work) {
        if (!isRaised)
          await store.transaction((db) => db.updateTable('usage_minutes').set({ open: 4 }).execute())
        isRaised = true
        return store.transaction(work)
      },
    }
    await convertMinutes(racing, 10)
    assert.equal((await store.db.selectFrom('usage_minutes').select('open').execute()).length, 1)
    assert.equal(await convertMinutes(store, 10), 1)
    assert.equal(await convertMinutes(store, 10), 0)
    assert.equal((await readDays(store.db, 'a', DAY, DAY))[0]?.peakTunnels, 4)
  })

  test(`${engine}: a reset also removes minutes that are not converted yet`, async (t) => {
    const { services } = await openTestServices(t, engine)
    atEnd(t, () => services.store.close())
    const { store } = services
    await fill(store, [
      { workspace_id: 'a', minute: DAY, edge_id: 'x', open: 3 },
      { workspace_id: 'a', minute: DAY, edge_id: 'y', open: 30 },
    ])
    const day = { workspaceId: 'a', day: DAY }
    const isDistributed = await store.usageShards.isDistributed()
    const removed = await store.transaction((db) => resetDay({ db, isDistributed }, day, 'y'))
    assert.deepEqual(removed, { counters: 0, minutes: 1 })
    assert.equal((await readDays(store.db, 'a', DAY, DAY))[0]?.peakTunnels, 3)
    await convertMinutes(store, 10)
    assert.equal((await readDays(store.db, 'a', DAY, DAY))[0]?.peakTunnels, 3)
    assert.deepEqual(await store.transaction((db) => resetDay({ db, isDistributed }, day)), {
      counters: 0,
      minutes: 1,
    })
    assert.deepEqual(await readDays(store.db, 'a', DAY, DAY), [])
    assert.deepEqual(await store.db.selectFrom('usage_hours').select('hour').execute(), [])
  })
}
