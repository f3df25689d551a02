// `npm run bench`: argv → figures → a table and lines of JSON. Progress goes to standard error.
import { loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import type { Figure, Result } from './figure.ts'
import { createFixtures, type Fixtures } from './fixtures.ts'
import { writeDocument } from './output/document.ts'
import { formatTarget } from './output/format.ts'
import { jsonLine, table } from './output/table.ts'
import { timing } from './rounds.ts'
import { figures, measure } from './suite.ts'

const HELP = `npm run bench -- [<figure>…] [--list] [--no-write] [--seconds <n>]

Measures Adit and its baselines in alternating rounds, and prints a table and a line of JSON for each figure,
in the order of --list. A prefix selects a family, e.g. "report". Without names, all figures are measured,
and docs/performance.md is written. A missed target is not a failure.

  --list      list the figures, their targets and what they compare
  --no-write  do not write the document
  --seconds   length of a round, 1 by default; longer on a slow or busy machine
  --help      show this help

For programs: npm run --silent bench -- start | grep '^{'
`
/** Above this load average before the run, results are not reliable. */
const QUIET_LOAD = 0.5

const began = performance.now()
const progress = (text: string) => {
  const seconds = Math.round((performance.now() - began) / 1000)
  process.stderr.write(`${String(seconds).padStart(4)} s  ${text}\n`)
}
// A closed pipe (`| head`) must not prevent the cleanup.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})

/** Selects a figure by name, or a family by the prefix of its names: `report`, `verify`. */
const isNamed =
  (selector: string) =>
  ({ name }: Figure) =>
    name === selector || name.startsWith(`${selector}_`)

function listFigures(): string {
  const width = Math.max(...figures.map(({ name }) => name.length))
  return figures
    .map(
      ({ name, ours, other, target }) =>
        `${name.padEnd(width)}  ${formatTarget(target).padEnd(6)}  ${ours} : ${other}`,
    )
    .join('\n')
}

/** Results are added one by one, so that an interrupted run can print them. */
async function measureAll(fixtures: Fixtures, chosen: Figure[], results: Result[]): Promise<void> {
  for (const [index, figure] of chosen.entries())
    try {
      progress(`${index + 1} of ${chosen.length}, ${figure.name}: ${figure.ours} : ${figure.other}`)
      results.push(await measure(fixtures, figure))
    } catch (error) {
      progress(`${figure.name} failed: ${(error as Error).message}`)
    }
}

const print = (results: Result[]) =>
  process.stdout.write(`${table(results)}\n\n${results.map((result) => `${jsonLine(result)}\n`).join('')}`)

/** npm does not stop its child processes when it is stopped. */
function watchNpm(onGone: () => void): void {
  const parent = process.ppid
  const watch = setInterval(() => process.ppid !== parent && onGone(), 500)
  watch.unref()
}

async function main(): Promise<number> {
  const options = {
    list: { type: 'boolean' },
    help: { type: 'boolean' },
    'no-write': { type: 'boolean' },
    seconds: { type: 'string', default: '1' },
  } as const
  const { values, positionals } = parseArgs({ options, allowPositionals: true })
  if (values.help) process.stdout.write(HELP)
  if (values.list) process.stdout.write(`${listFigures()}\n`)
  if (values.help || values.list) return 0
  const seconds = Number(values.seconds)
  if (!(seconds > 0)) {
    process.stderr.write(`Invalid length of a round: ${values.seconds} (expected seconds, for example 5).\n`)
    return 2
  }
  Object.assign(timing, { roundS: seconds, warmUpS: 2 * seconds })
  const unknown = positionals.filter((selector) => !figures.some(isNamed(selector)))
  if (unknown.length > 0) {
    const names = figures.map(({ name }) => name).join(', ')
    process.stderr.write(`Unknown figure: ${unknown.join(', ')}. Available: ${names}.\n`)
    return 2
  }
  const chosen = figures.filter(
    (figure) => positionals.length === 0 || positionals.some((selector) => isNamed(selector)(figure)),
  )
  const [load = 0] = loadavg()
  if (load > QUIET_LOAD)
    progress(`the machine is busy (load ${load.toFixed(1)}): results will not be reliable`)
  const fixtures = createFixtures(progress)
  const results: Result[] = []
  let isStopping = false
  const stop = () => {
    if (isStopping) return
    isStopping = true
    progress('stopping')
    if (results.length > 0) print(results)
    fixtures.close().finally(() => process.exit(130))
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop)
  watchNpm(stop)
  await measureAll(fixtures, chosen, results).finally(() => fixtures.close())
  print(results)
  // Only after a complete run: the table compares results of one machine at one time.
  if (positionals.length === 0 && results.length === chosen.length && !values['no-write'])
    writeDocument(results)
  progress('done')
  return results.length === chosen.length ? 0 : 1
}

process.exitCode = await main().catch((error: Error) => {
  const wrongUse = (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS')
  process.stderr.write(`${wrongUse ? error.message : error.stack}\n`)
  return wrongUse ? 2 : 1
})
