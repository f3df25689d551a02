// `npm run bench`: argv → figures → a table and lines of JSON. Progress goes to standard error.
import { loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import type { Figure, Result } from './figure.ts'
import { createWorkbench, type Workbench } from './fixtures.ts'
import { isWhole, writeChart } from './output/chart.ts'
import { writeDocument } from './output/document.ts'
import { targetOf } from './output/format.ts'
import { jsonLine, table } from './output/table.ts'
import { figures, measure } from './suite.ts'

const HELP = `npm run bench -- [<figure>…] [--list] [--no-write]

Measures Adit against what it is compared with, all in one run and in turn, and prints a table and a line of JSON for
each figure, in the order of --list. A family goes by its first word, e.g. "latency". Without names, all figures are
measured, and docs/performance.md and docs/performance.svg are written. A target that is missed is no failure.

  --list      the figures, their targets and what they compare
  --no-write  leave the documents alone, also after a whole run
  --help      this

For programs: npm run --silent bench -- start | grep '^{'
`
/** More than this, before anything is measured, and the figures will be about something else. */
const QUIET_LOAD = 0.5

const began = performance.now()
const say = (text: string) => {
  const seconds = Math.round((performance.now() - began) / 1000)
  process.stderr.write(`${String(seconds).padStart(4)} s  ${text}\n`)
}
// Whoever read along may have left (`| head`); what was begun is put away all the same.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})

/** A family goes by what its names begin with: `latency`, `verify`. */
const isNamed =
  (word: string) =>
  ({ name }: Figure) =>
    name === word || name.startsWith(`${word}_`)

function listed(): string {
  const width = Math.max(...figures.map(({ name }) => name.length))
  return figures
    .map(
      ({ name, ours, other, target }) =>
        `${name.padEnd(width)}  ${targetOf(target).padEnd(6)}  ${ours} : ${other}`,
    )
    .join('\n')
}

/** Results are added as they come, for whoever stops it before its end. */
async function measureAll(bench: Workbench, chosen: Figure[], results: Result[]): Promise<void> {
  for (const [index, figure] of chosen.entries())
    try {
      say(`${index + 1} of ${chosen.length}, ${figure.name}: ${figure.ours} : ${figure.other}`)
      results.push(await measure(bench, figure))
    } catch (error) {
      say(`${figure.name} failed: ${(error as Error).message}`)
    }
}

const print = (results: Result[]) =>
  process.stdout.write(`${table(results)}\n\n${results.map((result) => `${jsonLine(result)}\n`).join('')}`)

/** npm leaves what it started behind when it is told to stop. */
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
  } as const
  const { values, positionals } = parseArgs({ options, allowPositionals: true })
  if (values.help) process.stdout.write(HELP)
  if (values.list) process.stdout.write(`${listed()}\n`)
  if (values.help || values.list) return 0
  const unknown = positionals.filter((word) => !figures.some(isNamed(word)))
  if (unknown.length > 0) {
    const names = figures.map(({ name }) => name).join(', ')
    process.stderr.write(`There is no figure ${unknown.join(', ')}. There are ${names}.\n`)
    return 2
  }
  const chosen = figures.filter(
    (figure) => positionals.length === 0 || positionals.some((word) => isNamed(word)(figure)),
  )
  const [load = 0] = loadavg()
  if (load > QUIET_LOAD)
    say(`the machine is busy already (load ${load.toFixed(1)}): wait until it is not, or expect odd figures`)
  const bench = createWorkbench(say)
  const results: Result[] = []
  let isStopping = false
  const stop = () => {
    if (isStopping) return
    isStopping = true
    say('stopping')
    if (results.length > 0) print(results)
    bench.close().finally(() => process.exit(130))
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop)
  watchNpm(stop)
  await measureAll(bench, chosen, results).finally(() => bench.close())
  print(results)
  // Of a whole run only: the table says what one machine did at one time.
  if (results.length === figures.length && !values['no-write']) {
    writeDocument(results)
    if (isWhole(results)) writeChart(results)
  }
  say('done')
  return results.length === chosen.length ? 0 : 1
}

process.exitCode = await main().catch((error: Error) => {
  const wrongUse = (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS')
  process.stderr.write(`${wrongUse ? error.message : error.stack}\n`)
  return wrongUse ? 2 : 1
})
