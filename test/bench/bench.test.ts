// The bench works: it is run rarely, and a rename elsewhere must not break it unnoticed.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { createFixtures } from '../../bench/fixtures.ts'
import type { Job } from '../../bench/load/jobs.ts'
import { prepareOne } from '../../bench/load/requests.ts'
import { runWithWrk, wrkVersion } from '../../bench/load/wrk.ts'
import { jsonLine, table } from '../../bench/output/table.ts'
import { timing } from '../../bench/rounds.ts'
import { edgesPlan, keysPlan } from '../../bench/seed/catalog.ts'
import { createKeys } from '../../bench/seed/keys.ts'
import { REPORTED_DAYS, SHARED, workspaceIdOf } from '../../bench/seed/plan.ts'
import { seedEvents, seedPostgres, withClient } from '../../bench/seed/postgres.ts'
import { figures, measure } from '../../bench/suite.ts'
import { atEnd } from '../support/cleanup.ts'
import { createFolder, createMigratedDatabase } from '../support/databases.ts'
import { root } from '../support/process.ts'

const KEYS = 100

test('figures are measured on seeded databases or a tunnel, by real servers, baselines and the load process', async (t) => {
  Object.assign(timing, { rounds: 1, roundS: 0.05, warmUpS: 0.05, requests: 8 })
  const fixtures = createFixtures(() => {}, KEYS)
  atEnd(t, fixtures.close)
  for (const measured of ['report_limit_sqlite', 'tunnel_rps_64']) {
    const figure = figures.find(({ name }) => name === measured)
    assert.ok(figure)
    const result = await measure(fixtures, figure)
    assert.ok(result.ours > 0 && result.other > 0 && result.ratio > 0, jsonLine(result))
    assert.ok(table([result]).includes(figure.name))
  }
})

test('PostgreSQL is seeded with keys, the rows of edges and raw events', async (t) => {
  const url = await createMigratedDatabase(t, 'postgres')
  const keys = createKeys(`${createFolder(t)}/keys.txt`, KEYS)
  await seedPostgres(url, { ...edgesPlan(3), ...keysPlan(KEYS), workspaces: 101 }, keys)
  await seedEvents(url, { count: 300, days: 30, workspaceId: workspaceIdOf(1) })
  const count = async (name: string) =>
    Number((await withClient(url, (client) => client.query(`select count(*) from ${name}`))).rows[0].count)
  assert.equal(await count('api_keys'), KEYS)
  assert.equal(await count('usage_counters'), 30 + 3 * REPORTED_DAYS * SHARED.count)
  assert.equal(await count('usage_days'), 30 + REPORTED_DAYS * SHARED.count)
  assert.equal(await count('raw_events'), 300)
})

test('every figure has a name of its own and is explained', () => {
  const names = figures.map(({ name }) => name)
  assert.deepEqual(
    names.filter((name, index) => names.indexOf(name) !== index),
    [],
  )
  const [, explained = ''] = readFileSync(`${root}docs/performance.md`, 'utf8').split('## What is compared')
  assert.deepEqual(
    names.filter((name) => !explained.includes(`\`${name}\``)),
    [],
  )
})

test('wrk sends the requests in turn, and a response other than 2xx fails the run', async (t) => {
  if (wrkVersion() === undefined) return t.skip('wrk is not installed')
  const seen = new Set<string>()
  let status = 200
  const server = createServer((request, response) => {
    seen.add(request.url ?? '')
    response.writeHead(status).end('ok')
  }).listen(0, '127.0.0.1')
  atEnd(t, () => server.close())
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const paths = ['/first', '/second', '/third']
  const lists = [paths.map((path) => prepareOne(url, { method: 'GET', path, headers: {} }))]
  const job: Job = {
    url,
    connections: 2,
    draw: { kind: 'requests', requests: [], each: 'all' },
    until: { seconds: 1 },
  }
  const { completed, perSecond } = await runWithWrk(job, lists)
  assert.ok(completed > 0 && perSecond > 0)
  assert.deepEqual([...seen].sort(), paths)
  status = 500
  await assert.rejects(runWithWrk(job, lists), /bad responses/)
})
