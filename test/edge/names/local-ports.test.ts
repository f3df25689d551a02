// An edge without a control plane assigns the ports of TCP tunnels, and stores them in a file.
import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, rmdirSync, watch, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate as untilNextTurn } from 'node:timers/promises'
import { type LocalPortOptions, openLocalPorts } from '../../../src/edge/tcp/local-ports.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { createFolder } from '../../support/databases/create.ts'
import { until } from '../../support/until.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const NONE: number[] = []

const rejectionMessage = (result: number | { message: string }) =>
  typeof result === 'number' ? '' : result.message

/** With a clock that the test sets; `reopen` is a restart. */
function setUp(t: Test, overrides: Partial<LocalPortOptions> = {}) {
  const folder = createFolder(t)
  const state = { now: Date.parse('2026-03-01T00:00:00Z') }
  const options = {
    ...{ folder, range: { first: 20_000, last: 20_002 }, perWorkspace: 10, retentionDays: 7 },
    clock: () => state.now,
  }
  const open = async (changes: Partial<LocalPortOptions> = {}) => {
    const ports = await openLocalPorts({ ...options, ...overrides, ...changes })
    atEnd(t, ports.close)
    return ports
  }
  return { folder, file: join(folder, 'tcp-ports.json'), state, open }
}

test('a port stays with its name for 7 days after its last use, and then another name may get it', async (t) => {
  const { state, open } = setUp(t, { range: { first: 20_000, last: 20_000 } })
  const ports = await open()
  assert.equal(await ports.assign('acme', 'db', NONE), 20_000)
  state.now += 7 * DAY_MS
  assert.match(
    rejectionMessage(await ports.assign('beta', 'a', NONE)),
    /All ports .* are assigned\. .*tcp-ports\.json/,
  )
  assert.equal(await ports.assign('acme', 'db', NONE), 20_000)
  state.now += 7 * DAY_MS
  assert.equal(typeof (await ports.assign('beta', 'a', NONE)), 'object')
  state.now += DAY_MS
  assert.equal(await ports.assign('beta', 'a', NONE), 20_000)
})

test('a port of an open tunnel does not expire, also while the machine sleeps', async (t) => {
  const { state, open } = setUp(t, { range: { first: 20_000, last: 20_000 } })
  const ports = await open()
  await ports.assign('acme', 'db', NONE)
  state.now += 30 * DAY_MS
  assert.equal(typeof (await ports.assign('beta', 'a', [20_000])), 'object')
  state.now += 6 * DAY_MS
  await ports.renew([20_000])
  state.now += 6 * DAY_MS
  await ports.close()
  assert.equal(await (await open()).assign('acme', 'db', NONE), 20_000)
})

test('names that are opened at the same time get different ports, and later the same ones', async (t) => {
  const { open, file } = setUp(t, { range: { first: 20_000, last: 20_099 } })
  const ports = await open()
  const names = Array.from({ length: 30 }, (_, index) => [`w${index % 6}`, `n${index % 10}`] as const)
  const assigned = await Promise.all(names.map(([workspace, name]) => ports.assign(workspace, name, NONE)))
  assert.equal(new Set(assigned).size, 30)
  const again = await Promise.all(names.map(([workspace, name]) => ports.assign(workspace, name, NONE)))
  assert.deepEqual(again, assigned)
  assert.equal(JSON.parse(readFileSync(file, 'utf8')).ports.length, 30)
})

test('names keep their ports when the range changes', async (t) => {
  const { open } = setUp(t)
  const ports = await open()
  const port = await ports.assign('acme', 'db', NONE)
  await ports.close()
  const moved = await open({ range: { first: 30_000, last: 30_000 } })
  assert.deepEqual(
    [await moved.assign('acme', 'db', NONE), await moved.assign('acme', 'a', NONE)],
    [port, 30_000],
  )
})

test('an edge does not start with an invalid file, and does not change it', async (t) => {
  const { open, file, folder } = setUp(t)
  const entry = { port: 20_000, workspace: 'acme', name: 'db', usedAt: '2026-03-01T00:00:00Z' }
  const invalid = [
    '',
    '{"ports":',
    'null',
    '{}',
    ...[{ port: 0 }, { port: '20000' }, { usedAt: 'then' }, { name: 1 }, { workspace: null }].map((wrong) =>
      JSON.stringify({ ports: [{ ...entry, ...wrong }] }),
    ),
  ]
  for (const text of invalid) {
    writeFileSync(file, text)
    await assert.rejects(open(), /tcp-ports\.json has no valid list of the ports of TCP tunnels\. Restore it/)
    assert.equal(readFileSync(file, 'utf8'), text)
  }
  assert.deepEqual(readdirSync(folder), ['tcp-ports.json'], 'no lock is left')
})

test('a tunnel whose port cannot be stored is rejected', async (t) => {
  const { open, file } = setUp(t)
  const ports = await open()
  mkdirSync(`${file}.new`)
  const rejected = await ports.assign('acme', 'db', NONE)
  assert.match(rejectionMessage(rejected), /cannot store the port of the tunnel: EISDIR.*\. Retry later\.$/)
  rmdirSync(`${file}.new`)
  assert.equal(typeof (await ports.assign('acme', 'db', NONE)), 'number')
})

test('after a failed write, the port still belongs to a name that another client opens meanwhile', async (t) => {
  const { open, file } = setUp(t, { range: { first: 20_000, last: 20_000 } })
  const ports = await open()
  // The write fails in its last step, which replaces the file.
  mkdirSync(file)
  const first = ports.assign('acme', 'db', NONE)
  await untilNextTurn()
  const second = ports.assign('acme', 'db', NONE)
  assert.match(rejectionMessage(await first), /cannot store the port/)
  rmdirSync(file)
  assert.equal(await second, 20_000)
  assert.match(rejectionMessage(await ports.assign('beta', 'a', NONE)), /All ports .* are assigned/)
  await ports.close()
  assert.equal(await (await open()).assign('acme', 'db', NONE), 20_000)
})

test('openings at the same time share a write, and names used within an hour need none', async (t) => {
  const { open, folder, state } = setUp(t, { range: { first: 20_000, last: 20_099 }, perWorkspace: 100 })
  const ports = await open()
  const changed: (string | null)[] = []
  const watcher = watch(folder, (_, name) => changed.push(name))
  atEnd(t, () => watcher.close())
  /** Opens 50 names. Returns how often the file was replaced. */
  const openAll = async () => {
    await Promise.all(Array.from({ length: 50 }, (_, index) => ports.assign('acme', `n${index}`, NONE)))
    mkdirSync(join(folder, 'end'))
    await until('all changes are reported', () => changed.includes('end'))
    rmdirSync(join(folder, 'end'))
    await until('the end is removed', () => changed.filter((name) => name === 'end').length === 2)
    return changed.splice(0).filter((name) => name === 'tcp-ports.json').length
  }
  assert.equal(await openAll(), 1)
  state.now += HOUR_MS - 1
  assert.equal(await openAll(), 0)
  state.now += 1
  assert.equal(await openAll(), 1)
})

test('closing waits for the write in progress, and nothing is written afterwards', async (t) => {
  const { open, file } = setUp(t)
  const ports = await open()
  const assigning = ports.assign('acme', 'db', NONE)
  await ports.close()
  const text = readFileSync(file, 'utf8')
  assert.equal(typeof (await assigning), 'number')
  const next = await open()
  assert.match(rejectionMessage(await ports.assign('acme', 'a', NONE)), /is stopping/)
  await ports.renew([20_000, 20_001, 20_002])
  assert.equal(readFileSync(file, 'utf8'), text)
  assert.equal(await next.assign('acme', 'db', NONE), await assigning)
})

test('a second edge cannot use the folder', async (t) => {
  const { open } = setUp(t)
  await open()
  await assert.rejects(open(), /is in use by process \d+, another edge/)
})
