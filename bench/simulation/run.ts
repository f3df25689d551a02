// `npm run bench:simulation`: measures the costs of merging on this machine's PostgreSQL, simulates the reports
// of 10,000 edges with them, and writes docs/operations/simulation.md and its chart.
import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { readConfig } from '../../src/config.ts'
import { createLog } from '../../src/log.ts'
import { openServices } from '../../src/services.ts'
import { createCluster } from '../../test/support/postgres.ts'
import { facts } from '../output/document.ts'
import { withClient } from '../seed/postgres.ts'
import { chart } from './chart.ts'
import { type Costs, measureCosts } from './costs.ts'
import { resultsOf } from './document.ts'
import { simulate } from './model.ts'
import { hour, marks, steady } from './scenarios.ts'
import { measureStorage, type Storage } from './storage.ts'

const HELP = `npm run bench:simulation [-- --stored] [--no-write]

Measures what merging costs on a PostgreSQL of this machine (about half a minute), simulates with these costs,
and writes docs/operations/simulation.md, its chart, and the costs to bench/simulation/measured.json.

  --stored    use the costs of measured.json instead of measuring; the result is then always the same
  --no-write  print the results only
`
const MEASURED = new URL('measured.json', import.meta.url)
const DOCUMENT = new URL('../../docs/operations/simulation.md', import.meta.url)
const CHART = new URL('../../docs/operations/simulation.svg', import.meta.url)
const BEGIN = '<!-- last run: written by npm run bench:simulation -->'
const END = '<!-- end of last run -->'
const SETTINGS = ['shared_buffers=512MB', 'max_wal_size=4GB']

interface Measured {
  machine: string
  costs: Costs
  storage: Storage
}

const progress = (text: string) => process.stderr.write(`${text}\n`)

async function measure(): Promise<Measured> {
  const cluster = await createCluster(SETTINGS)
  try {
    await cluster.start()
    await withClient(`${cluster.url}/postgres`, (client) => client.query('create database simulation'))
    const url = `${cluster.url}/simulation`
    const config = readConfig({ ADIT_DATABASE_URL: url, ADIT_SECRET: 'x'.repeat(32) })
    const { store } = await openServices(config, createLog('silent'), 10_000)
    try {
      const costs = await measureCosts(store, url, progress)
      return { machine: facts().join(' · '), costs, storage: await measureStorage(store, url, progress) }
    } finally {
      await store.close()
    }
  } finally {
    await cluster.remove()
  }
}

async function main(): Promise<void> {
  const options = {
    stored: { type: 'boolean' },
    'no-write': { type: 'boolean' },
    help: { type: 'boolean' },
  } as const
  const { values } = parseArgs({ options })
  if (values.help) {
    process.stdout.write(HELP)
    return
  }
  const measured: Measured = values.stored ? JSON.parse(readFileSync(MEASURED, 'utf8')) : await measure()
  const { costs, storage, machine } = measured
  const sizes = steady.map((size) => {
    progress(`simulating ${size.name}`)
    return { ...size, buckets: simulate(size.scenario, costs) }
  })
  progress('simulating the course of half an hour')
  const lines = (['with', 'without'] as const).map((kind) => ({
    kind,
    buckets: simulate({ ...hour, hasBackPressure: kind === 'with' }, costs),
  }))
  const results = resultsOf({ machine, costs, storage, sizes, lines })
  process.stdout.write(`${results}\n`)
  if (values['no-write']) return
  writeFileSync(MEASURED, `${JSON.stringify(measured, undefined, 2)}\n`)
  writeFileSync(CHART, chart(lines, marks, hour.seconds))
  const text = readFileSync(DOCUMENT, 'utf8')
  const [from, to] = [text.indexOf(BEGIN), text.indexOf(END)]
  if (from < 0 || to < from) throw new Error('docs/operations/simulation.md lacks the markers')
  writeFileSync(DOCUMENT, `${text.slice(0, from)}${BEGIN}\n\n${results}\n${text.slice(to)}`)
}

await main()
