// The edge SDK's meter: usage is counted exactly once, despite failures on either side.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Receipt } from '../../src/edge-sdk/api.ts'
import { createControlPlane, type MeterOptions, startMeter } from '../../src/edge-sdk/index.ts'
import { resetUsage } from '../../src/server/domain/usage/reset.ts'
import {
  addEdge,
  addWorkspace,
  caller,
  operator,
  presentKey,
  recordVerified,
  serve,
  type TestServer,
} from '../support/api/server.ts'
import { mergeReport } from '../support/api/usage.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import { createFolder, createMigratedDatabase, type Engine, engines } from '../support/databases/create.ts'
import { startRelay } from '../support/network/relay.ts'
import { freePort } from '../support/processes/ports.ts'
import { root, run, startServing } from '../support/processes/process.ts'
import { until } from '../support/until.ts'

async function setUp(
  t: Test,
  { engine = 'sqlite' as Engine, ...options }: Partial<MeterOptions> & { engine?: Engine } = {},
) {
  const server = await serve(t, { engine, ...(options.clock && { clock: options.clock }) })
  const edge = await addEdge(server)
  const relay = await startRelay(t, server.url)
  const controlPlane = createControlPlane({ url: relay.url, credential: edge.token })
  const folder = createFolder(t)
  const notices: string[] = []
  const rejections: Receipt['rejected'] = []
  const report: typeof controlPlane.report = async (usage) => {
    const receipt = await controlPlane.report(usage)
    rejections.push(...receipt.rejected)
    return receipt
  }
  const start = async (more: Partial<MeterOptions> = {}) => {
    const onNotice = (line: string) => notices.push(line)
    const meter = await startMeter(
      { ...controlPlane, report },
      { folder, onNotice, reportEveryMs: 100, ...options, ...more },
    )
    atEnd(t, meter.stop)
    return meter
  }
  /** A file of an earlier run with the same credential. */
  const leave = (name: string, text: string) =>
    writeFileSync(join(folder, `usage-${controlPlane.credentialFingerprint}-${name}.json`), text)
  return { server, relay, folder, notices, rejections, start, leave }
}

const readUsage = async (server: TestServer, query = 'days=2') =>
  (await server.call('GET', `/usage?${query}`)).json

const waiting = (folder: string): string =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join()

for (const engine of engines) {
  test(`${engine}: the workspace's usage shows exactly what was counted`, async (t) => {
    const { server, folder, notices, start } = await setUp(t, { engine })
    await addWorkspace(server, 'other')
    const meter = await start()
    for (let tunnel = 0; tunnel < 3; tunnel++) meter.opened('acme')
    meter.opened('other')
    for (let round = 1; round <= 100; round++) {
      meter.transferred('acme', { requests: 1, bytesIn: round, bytesOut: 2 * round })
      meter.transferred('other', { bytesOut: 7 })
      if (round % 20 === 0) await sleep(30)
    }
    meter.closed('acme')
    meter.closed('acme')
    meter.rejected('acme')
    const before = Date.now()
    await meter.stop()
    const usage = await readUsage(server)
    assert.equal(usage.totalBytes, 3 * 5050)
    assert.equal(usage.peakTunnels, 3)
    assert.equal(usage.eventCount, 6)
    assert.ok(Math.abs(Date.parse(usage.lastSeen) - before) < 5_000)
    assert.equal(waiting(folder), '', 'the spool is empty')
    assert.deepEqual(notices, [])
  })

  test(`${engine}: tunnels that another edge counts are no part of the peak`, async (t) => {
    const { server, start } = await setUp(t, { engine })
    const meter = await start()
    meter.opened('acme', false)
    meter.count('acme', true)
    meter.opened('acme', false)
    meter.count('acme', false)
    meter.closed('acme', false)
    await meter.stop()
    const { peakTunnels, eventCount } = await readUsage(server)
    assert.deepEqual({ peakTunnels, eventCount }, { peakTunnels: 1, eventCount: 3 })
  })

  test(`${engine}: kill -9 of the edge loses no spooled usage and counts nothing twice`, async (t) => {
    const port = String(await freePort())
    const env = {
      ADIT_DATABASE_URL: await createMigratedDatabase(t, engine),
      ADIT_LOG_LEVEL: 'silent',
      ADIT_PORT: port,
    }
    const json = async (...args: string[]) => JSON.parse((await run(t, [...args, '--json'], env)).stdout)
    await json('admin', 'workspace', 'create', 'acme')
    const key = await json('admin', 'key', 'create', '--workspace', 'acme')
    const edge = await json('admin', 'edge', 'create', 'fra-1')
    const folder = createFolder(t)
    const url = `http://127.0.0.1:${port}`
    const startEdge = () => {
      const script = join(root, 'test/edge-sdk/meter-process.ts')
      const child = spawn(process.execPath, [script, url, edge.token, folder], {
        stdio: ['pipe', 'pipe', 'inherit'],
      })
      atEnd(t, () => child.kill('SIGKILL'))
      let counted = 0
      child.stdout.on('data', (text) => {
        counted = Number(String(text).trim().split('\n').at(-1))
      })
      return {
        child,
        async count(bytes: number[]) {
          const goal = counted + bytes.reduce((sum, one) => sum + one, 0)
          for (const one of bytes) child.stdin.write(`${one}\n`)
          await until('it has counted', () => counted === goal)
          return goal
        },
      }
    }
    const bytes = Array.from({ length: 50 }, (_, index) => 1 + ((index * 37) % 101))
    let truth = 0
    // The first two runs are killed without a control plane, the third while it reports.
    const usage = async () =>
      (await caller(`${url}/api/v1`, key.token)('GET', '/usage?days=2')).json.totalBytes
    for (let round = 0; round < 3; round++) {
      if (round === 2) {
        await startServing(t, env)
        await presentKey(url, edge.token, key.token)
      }
      const one = startEdge()
      const counted = await one.count(bytes)
      truth += counted
      if (round < 2)
        await until('it is on disk', () => waiting(folder).split(`"bytesIn":${counted}`).length === round + 2)
      else await until('it has arrived', async () => (await usage()) === truth)
      one.child.kill('SIGKILL')
      await once(one.child, 'exit')
    }
    const last = startEdge()
    truth += await last.count(bytes)
    await until('all of it has arrived', async () => (await usage()) === truth)
    last.child.stdin.write('stop\n')
    await once(last.child, 'exit')
    assert.equal(await usage(), truth)
    assert.equal(waiting(folder), '')
  })
}

test('a tunnel that is open across midnight counts on both days, and so does its traffic', async (t) => {
  let now = Date.parse('2026-11-14T23:59:30.000Z')
  const { server, start } = await setUp(t, { clock: () => now })
  const meter = await start()
  meter.opened('acme')
  meter.opened('acme')
  meter.transferred('acme', { bytesIn: 10 })
  now = Date.parse('2026-11-15T00:00:30.000Z')
  meter.closed('acme')
  meter.transferred('acme', { bytesIn: 5 })
  now = Date.parse('2026-11-15T00:03:00.000Z')
  await meter.stop()
  const { series } = await readUsage(server)
  assert.deepEqual(
    series.map(({ bytes, peakTunnels }: { bytes: number; peakTunnels: number }) => ({ bytes, peakTunnels })),
    [
      { bytes: 10, peakTunnels: 2 },
      { bytes: 5, peakTunnels: 2 },
    ],
  )
})

test('while the control plane is unreachable usage is spooled, and reported after it is back', async (t) => {
  const { server, relay, folder, notices, start } = await setUp(t)
  relay.cut()
  const meter = await start()
  meter.transferred('acme', { requests: 1, bytesIn: 41 })
  await until('it is on disk', () => waiting(folder).includes('"bytesIn":41'))
  meter.transferred('acme', { requests: 1, bytesIn: 1 })
  await until('later usage too', () => waiting(folder).includes('"bytesIn":42'))
  await until('its size is known', () => meter.spoolBytes() === Buffer.byteLength(waiting(folder)))
  relay.mend()
  await until('it has arrived', async () => (await readUsage(server)).totalBytes === 42)
  await until('the spool is empty', () => waiting(folder) === '' && meter.spoolBytes() === 0)
  await until('both notices', () => notices.length === 2)
  assert.match(notices[0] as string, /^Failed to report usage, kept in .+: http:.+ cannot be reached/)
  assert.equal(notices[1], 'Reporting usage again.')
})

test('usage counted while a report hangs is spooled', async (t) => {
  const { relay, folder, start } = await setUp(t)
  relay.hold()
  const meter = await start()
  meter.transferred('acme', { bytesIn: 1 })
  await sleep(500)
  meter.transferred('acme', { bytesIn: 1 })
  await until('it is on disk', () => waiting(folder).includes('"bytesIn":2'))
  relay.release()
})

test('a report whose response was lost is retried and counts once', async (t) => {
  const { server, relay, start } = await setUp(t)
  const meter = await start()
  relay.hold()
  meter.transferred('acme', { bytesIn: 10 })
  await until('the report has arrived', async () => (await readUsage(server)).totalBytes === 10)
  relay.cut()
  meter.transferred('acme', { bytesIn: 5 })
  relay.release()
  relay.mend()
  await until('the rest has arrived', async () => (await readUsage(server)).totalBytes === 15)
})

test('at the limit peaks and totals are kept, and further workspaces are not counted', async (t) => {
  let now = Date.parse('2026-11-15T10:00:00.000Z')
  const { server, relay, notices, start } = await setUp(t, { clock: () => now, itemsMax: 20 })
  for (let index = 0; index < 30; index++) await addWorkspace(server, `w${index}`)
  relay.cut()
  const meter = await start()
  for (let minute = 0; minute < 100; minute++) {
    now += 60_000
    meter.opened('acme')
    if (minute === 50) for (let more = 0; more < 7; more++) meter.opened('acme')
    if (minute === 50) for (let more = 0; more < 7; more++) meter.closed('acme')
    meter.closed('acme')
    meter.transferred('acme', { bytesIn: 1 })
  }
  for (let index = 0; index < 30; index++) meter.transferred(`w${index}`, { bytesIn: 1 })
  meter.transferred('acme', { bytesIn: 1 })
  await until('the notice', () => notices.some((line) => line.startsWith('Too much unreported usage')))
  relay.mend()
  await meter.stop()
  const usage = await readUsage(server)
  assert.equal(usage.totalBytes, 101)
  assert.equal(usage.peakTunnels, 8)
  const first = await server.services.store.db
    .selectFrom('usage_counters')
    .select((all) => all.fn.countAll<number>().as('rows'))
    .executeTakeFirstOrThrow()
  assert.ok(Number(first.rows) <= 20)
})

test('rejected usage is logged once and dropped', async (t) => {
  const { server, folder, notices, rejections, start } = await setUp(t)
  const meter = await start()
  for (let round = 1; round <= 3; round++) {
    meter.transferred('missing', { bytesIn: 1 })
    await until('it is rejected', () => rejections.length === round)
    await until('it is dropped', () => waiting(folder) === '')
  }
  meter.transferred('acme', { bytesIn: 1 })
  await until('the rest arrives', async () => (await readUsage(server)).totalBytes === 1)
  await until('both notices', () => notices.length === 2)
  assert.deepEqual(notices, [
    'The control plane rejected part of the usage: unknown_workspace.',
    'The control plane accepts all usage again.',
  ])
})

test('usage ahead of the control plane’s clock is retried until it is accepted', async (t) => {
  let ahead = 3_600_000
  const server = await serve(t, { engine: 'sqlite', clock: () => Date.now() - ahead })
  const edge = await addEdge(server)
  const folder = createFolder(t)
  const controlPlane = createControlPlane({ url: server.url, credential: edge.token })
  const notices: string[] = []
  const meter = await startMeter(controlPlane, {
    folder,
    reportEveryMs: 100,
    onNotice: (line) => notices.push(line),
  })
  atEnd(t, meter.stop)
  meter.transferred('acme', { bytesIn: 1 })
  await until('it is rejected', () => notices.some((line) => line.includes('in_future')))
  await until('it stays spooled', () => waiting(folder).includes('acme'))
  ahead = 0
  await until('it is accepted', async () => (await readUsage(server)).totalBytes === 1)
})

test('usage that a full day rejects stays spooled until the operator resets the day', async (t) => {
  const { server, folder, notices, start, leave } = await setUp(t)
  const other = await addWorkspace(server, 'other')
  const day = new Date().toISOString().slice(0, 10)
  const absurd = {
    edgeId: 'edge_absurd',
    epoch: 'e',
    counters: [
      {
        workspaceId: server.workspace.id,
        day: Date.parse(day),
        requests: 0n,
        bytesIn: 2n ** 63n - 1n,
        bytesOut: 0n,
        events: 0n,
        lastSeen: null,
      },
    ],
    tunnels: [],
  }
  await mergeReport(server.services.store, absurd)
  const left = (workspace: string) => ({ workspace, day, requests: 1, bytesIn: 3, bytesOut: 0, events: 0 })
  leave('left', JSON.stringify([{ epoch: 'left', counters: [left('acme'), left('other')] }]))
  const meter = await start()
  meter.transferred('acme', { bytesIn: 40 })
  await until('it is rejected', () => notices.some((line) => line.includes('too_large')))
  await until('only the rejected item is kept', () => !waiting(folder).includes('other'))
  const usageOfOther = (await server.call('GET', '/usage?days=2', { key: other.key.token })).json
  assert.equal(usageOfOther.totalBytes, 3)
  await until('it stays spooled', () => waiting(folder).includes('"bytesIn":40'))
  await resetUsage(server.services, operator, { workspace: 'acme', day, edge: 'edge_absurd' })
  await until('both have arrived', async () => (await readUsage(server)).totalBytes === 43)
  await until('the spool is empty', () => waiting(folder) === '')
})

test('usage rejected for too many epochs stays spooled until the operator resets the day', async (t) => {
  const { server, folder, notices, start } = await setUp(t)
  const { id: edgeId } = (await server.services.store.db
    .selectFrom('edges')
    .select('id')
    .executeTakeFirst()) as { id: string }
  const day = new Date().toISOString().slice(0, 10)
  const figures = { requests: 1n, bytesIn: 0n, bytesOut: 0n, events: 0n, lastSeen: null }
  const counters = [{ workspaceId: server.workspace.id, day: Date.parse(day), ...figures }]
  for (let index = 0; index < 100; index++)
    await mergeReport(server.services.store, { edgeId, epoch: `e${index}`, counters, tunnels: [] })
  const meter = await start()
  meter.transferred('acme', { bytesIn: 40 })
  await until('it is rejected', () => notices.some((line) => line.includes('too_many_epochs')))
  await until('it stays spooled', () => waiting(folder).includes('"bytesIn":40'))
  await resetUsage(server.services, operator, { workspace: 'acme', day, edge: edgeId })
  await until('it arrived', async () => (await readUsage(server)).totalBytes === 40)
  await until('the spool is empty', () => waiting(folder) === '')
})

test('a malformed spool file is quarantined, and the others are sent', async (t) => {
  const { server, folder, notices, start, leave } = await setUp(t)
  const day = new Date().toISOString().slice(0, 10)
  const left = [
    { epoch: 'e1', counters: [{ workspace: 'acme', day, requests: 1, bytesIn: 3, bytesOut: 0, events: 0 }] },
  ]
  leave('a', '[{"epoch":')
  leave('b', JSON.stringify(left))
  await start()
  await until('the other is sent', async () => (await readUsage(server)).totalBytes === 3)
  await until('the spool is empty', () => waiting(folder) === '')
  const quarantined = readdirSync(folder).filter((name) => name.startsWith('usage-'))
  assert.match(quarantined.join(), /^usage-[0-9a-f]{16}-a\.json\.bad$/)
  await until('the notice', () => notices.length > 0)
  assert.match(notices[0] as string, /^Renamed .*-a\.json to \.bad: it contains no reports/)
})

test('a folder that is not writable fails the start, and one that is lost later stops nothing', async (t) => {
  const { server, folder, notices, start } = await setUp(t)
  writeFileSync(join(folder, 'file'), '')
  await assert.rejects(start({ folder: join(folder, 'file', 'inside') }), /ENOTDIR/)
  if (process.platform === 'linux')
    await assert.rejects(start({ folder: '/proc/nobody/deep/inside' }), /ENOENT/)
  const doomed = join(folder, 'doomed')
  const meter = await start({ folder: doomed })
  await sleep(300)
  rmSync(doomed, { recursive: true })
  meter.transferred('acme', { bytesIn: 9 })
  await until('it is reported', async () => (await readUsage(server)).totalBytes === 9)
  assert.ok(notices.some((line) => line.startsWith(`Failed to write usage to ${doomed}`)))
  mkdirSync(doomed)
  meter.transferred('acme', { bytesIn: 1 })
  await until('it is written again', () => notices.includes(`Writing usage to ${doomed} again.`))
})

test('rejected files of an earlier run are quarantined, and block nothing', async (t) => {
  const { server, folder, start, leave } = await setUp(t)
  leave('a', '[{}]')
  leave('b', '[null]')
  writeFileSync(join(folder, 'usage-c.json.new'), 'half a draft')
  const meter = await start()
  meter.transferred('acme', { bytesIn: 5 })
  await until('it arrives', async () => (await readUsage(server)).totalBytes === 5)
  await until(
    'they are quarantined',
    () => readdirSync(folder).filter((name) => name.endsWith('.bad')).length === 2,
  )
  assert.ok(!readdirSync(folder).includes('usage-c.json.new'))
})

test('stopping without a control plane leaves the spool on disk, within seconds', async (t) => {
  const { relay, folder, start, leave } = await setUp(t)
  relay.hold()
  leave('a', JSON.stringify([{ epoch: 'e1', counters: [], tunnels: [] }]))
  const meter = await start()
  meter.transferred('acme', { bytesIn: 777 })
  const began = performance.now()
  await meter.stop()
  assert.ok(performance.now() - began < 8_000)
  assert.ok(waiting(folder).includes('"bytesIn":777'))
  relay.cut()
})

test('usage beyond the limit of one report is sent in several', async (t) => {
  const { server, start } = await setUp(t)
  const rows = Array.from({ length: 5_200 }, (_, index) => ({
    id: `ws_${index}`,
    slug: `w${index}`,
    name: 'x',
    created_at: 1,
    provisioned_at: 1,
  }))
  await server.services.store.transaction(async (db) => {
    for (let start = 0; start < rows.length; start += 1_000)
      await db
        .insertInto('workspaces')
        .values(rows.slice(start, start + 1_000))
        .execute()
  })
  await recordVerified(server)
  const meter = await start({ reportEveryMs: 60_000 })
  for (const { slug } of rows) meter.transferred(slug, { bytesIn: 1 })
  await meter.stop()
  const { total } = await server.services.store.db
    .selectFrom('usage_counters')
    .select((all) => all.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow()
  assert.equal(Number(total), 5_200)
})

test('a clock that jumps forward and back loses no usage', async (t) => {
  const base = Date.parse('2026-11-15T12:00:00.000Z')
  let ahead = 0
  const { server, start } = await setUp(t, { clock: () => base })
  const meter = await start({ clock: () => base + ahead })
  const arrived = (bytes: number) => async () => (await readUsage(server)).totalBytes === bytes
  meter.transferred('acme', { bytesIn: 1000 })
  await until('the first arrives', arrived(1000))
  ahead = 3 * 86_400_000
  await sleep(400)
  ahead = 0
  meter.transferred('acme', { bytesIn: 900 })
  await until('the second is added', arrived(1900))
})

test('acknowledged usage is evicted: only unreported usage counts against the limit', async (t) => {
  let now = Date.parse('2026-11-15T12:00:00.000Z')
  const { server, folder, notices, start } = await setUp(t, { clock: () => now, itemsMax: 10 })
  for (let index = 0; index < 30; index++) await addWorkspace(server, `w${index}`)
  const days = async () =>
    (await server.services.store.db.selectFrom('usage_days').select('day').execute()).length
  const meter = await start()
  for (let index = 0; index < 30; index++) {
    now += 60_000
    meter.opened(`w${index}`)
    meter.transferred(`w${index}`, { bytesIn: 1 })
    meter.closed(`w${index}`)
    await until(
      'it is acknowledged',
      () => waiting(folder) === '' && days().then((rows) => rows === index + 1),
    )
  }
  assert.deepEqual(notices, [])
})

test('a tunnel that stays open counts in every minute, without calls to the meter', async (t) => {
  let now = Date.parse('2026-11-15T12:00:00.000Z')
  const { server, start } = await setUp(t, { clock: () => now })
  const meter = await start()
  meter.opened('acme')
  for (let minute = 0; minute < 3; minute++) {
    await sleep(250)
    now += 60_000
  }
  await meter.stop()
  const hours = await server.services.store.db.selectFrom('usage_hours').select('open').execute()
  assert.deepEqual(
    hours.map(({ open }) => open),
    ['1*4', '1*4'],
    'the edge and the total',
  )
})

test('counting stays fast at the limit', async (t) => {
  const { relay, start } = await setUp(t)
  relay.cut()
  const meter = await start({ itemsMax: 20_000, reportEveryMs: 60_000 })
  for (let index = 0; index < 20_000; index++) meter.transferred(`w${index}`, { bytesIn: 1 })
  const began = performance.now()
  for (let index = 0; index < 20_000; index++) meter.transferred(`x${index}`, { bytesIn: 1 })
  const ms = performance.now() - began
  t.diagnostic(`20,000 that cannot be counted took ${Math.round(ms)} ms`)
  assert.ok(ms < 5_000, 'each call scanned all items')
})

test('invalid counts and slugs are rejected immediately', async (t) => {
  const { start } = await setUp(t)
  const meter = await start()
  for (const value of [-1, 0.5, Number.NaN, 2 ** 53])
    assert.throws(() => meter.transferred('acme', { bytesIn: value }), /Invalid count/)
  for (const slug of ['', 'Not A Slug', 'x'.repeat(64)])
    assert.throws(() => meter.opened(slug), /Invalid workspace slug/)
  meter.closed('acme')
})
