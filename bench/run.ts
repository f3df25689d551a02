// `npm run bench`: argv → figures → a table and lines of JSON. Progress goes to standard error.
import { parseArgs } from 'node:util'
import type { Figure, Result } from './figure.ts'
import { isWhole, writeChart } from './output/chart.ts'
import { writeDocument } from './output/document.ts'
import { jsonLine, table } from './output/table.ts'
import { reachOf } from './output/words.ts'
import { figures, measure } from './suite.ts'
import { createWorkbench, type Workbench } from './workbench.ts'

const HELP = `npm run bench [-- <figure>…] [-- --list]

Measures Adit against what it is compared with, all in one run and in turn, and prints a table and a line of JSON for
each figure. Without names, all figures are measured, and docs/performance.md and docs/performance.svg are written.

  --list      the figures and what they compare
  --no-write  leave the documents alone
  --help      this
`

const began = performance.now()
const say = (text: string) => {
  const seconds = Math.round((performance.now() - began) / 1000)
  process.stderr.write(`${String(seconds).padStart(4)} s  ${text}\n`)
}

/** A family goes by what its names begin with: `latency`, `verify`. */
const isNamed =
  (word: string) =>
  ({ name }: Figure) =>
    name === word || name.startsWith(`${word}_`)

function listed(): string {
  const width = Math.max(...figures.map(({ name }) => name.length))
  return figures
    .map(
      ({ name, ours, other, reach }) =>
        `${name.padEnd(width)}  ${reachOf(reach).padEnd(6)}  ${ours} : ${other}`,
    )
    .join('\n')
}

async function measureAll(bench: Workbench, chosen: Figure[]): Promise<Result[]> {
  const results: Result[] = []
  for (const figure of chosen)
    try {
      results.push(await measure(bench, figure))
    } catch (error) {
      say(`${figure.name} failed: ${(error as Error).message}`)
    }
  return results
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
    process.stderr.write(`There is no figure ${unknown.join(', ')}. There are:\n${listed()}\n`)
    return 2
  }
  const chosen = figures.filter(
    (figure) => positionals.length === 0 || positionals.some((word) => isNamed(word)(figure)),
  )
  const bench = createWorkbench(say)
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      say('stopping')
      bench.close().finally(() => process.exit(130))
    })
  const results = await measureAll(bench, chosen).finally(() => bench.close())
  process.stdout.write(`${table(results)}\n\n${results.map((result) => `${jsonLine(result)}\n`).join('')}`)
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
