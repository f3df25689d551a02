// The bench works: it is run rarely, and a rename elsewhere must not break it unnoticed.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { createFixtures } from '../../bench/fixtures.ts'
import { startLoad } from '../../bench/load.ts'
import { jsonLine, table } from '../../bench/output/table.ts'
import { timing } from '../../bench/rounds.ts'
import { keysPlan } from '../../bench/seed/catalog.ts'
import { createKeys } from '../../bench/seed/keys.ts'
import { seedPostgres, withClient } from '../../bench/seed/postgres.ts'
import { figures, measure } from '../../bench/suite.ts'
import { atEnd } from '../support/cleanup.ts'
import { createFolder, createMigratedDatabase } from '../support/databases/create.ts'
import { startHttp } from '../support/edges/tunneled.ts'
import { root } from '../support/processes/process.ts'

const KEYS = 100

test('figures are measured on seeded databases or a tunnel, by real servers, baselines and the load process', async (t) => {
  Object.assign(timing, { rounds: 1, roundS: 0.05, warmUpS: 0.05, requests: 8 })
  const fixtures = createFixtures(() => {}, KEYS)
  atEnd(t, fixtures.close)
  const each = [
    'report_limit_sqlite',
    'tunnel_new_connections',
    'tunnel_far',
    'tunnel_mixed_small',
    'ws_echo_32',
  ]
  for (const measured of each) {
    const figure = figures.find(({ name }) => name === measured)
    assert.ok(figure)
    const result = await measure(fixtures, figure)
    assert.ok(result.ours > 0 && result.other > 0 && result.ratio > 0, jsonLine(result))
    assert.ok(table([result]).includes(figure.name))
  }
})

test('PostgreSQL is seeded with keys', async (t) => {
  const url = await createMigratedDatabase(t, 'postgres')
  const keys = createKeys(`${createFolder(t)}/keys.txt`, KEYS)
  await seedPostgres(url, keysPlan(KEYS), keys)
  const count = async (name: string) =>
    Number((await withClient(url, (client) => client.query(`select count(*) from ${name}`))).rows[0].count)
  assert.equal(await count('api_keys'), KEYS)
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

test('the load sends its requests in turn, and an unexpected status or body fails the run', async (t) => {
  const seen = new Set<string>()
  let status = 200
  const { port } = await startHttp(t, (request, response) => {
    seen.add(request.url ?? '')
    response.writeHead(status, { 'content-length': 5 }).end('hello')
  })
  const load = startLoad()
  atEnd(t, load.stop)
  const paths = ['/first', '/second', '/third']
  const job = {
    url: `http://127.0.0.1:${port}`,
    connections: 2,
    draw: {
      kind: 'requests' as const,
      requests: paths.map((path) => ({ method: 'GET' as const, path, headers: {} })),
      each: 'all' as const,
    },
    until: { amount: 12 },
    bodyPrefix: 'hello',
  }
  const { completed, perSecond } = await load.run(job)
  assert.ok(completed >= 12 && perSecond > 0)
  assert.deepEqual([...seen].sort(), paths)
  await assert.rejects(load.run({ ...job, bodyPrefix: 'goodbye' }), /unexpected response/)
  status = 500
  await assert.rejects(load.run(job), /unexpected response/)
})
