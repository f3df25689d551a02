// The output of a run: a table, and a line of JSON for each figure.
import { isMet, type Result } from '../figure.ts'
import { formatBusy, formatSpread, formatTarget, formatValues, formatVerdict, short } from './format.ts'

const HEAD = ['figure', 'ratio', 'spread', 'target', 'met', 'ours to other', 'busy']

const toCells = (result: Result) => [
  result.figure.name,
  short(result.ratio),
  formatSpread(result),
  formatTarget(result.figure.target),
  formatVerdict(result),
  formatValues(result),
  formatBusy(result),
]

export function table(results: Result[]): string {
  const rows = [HEAD, ...results.map(toCells)]
  const widths = HEAD.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] as number))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

export function jsonLine(result: Result): string {
  const { figure, ratio, ours, other, rounds, spread, busy, note, seconds } = result
  return JSON.stringify({
    name: figure.name,
    ratio,
    ours,
    other,
    unit: figure.unit,
    rounds,
    spread,
    target: formatTarget(figure.target) || undefined,
    met: isMet(result),
    busy,
    note,
    seconds: Math.round(seconds),
  })
}

/** For a document. */
export function markdownTable(results: Result[]): string {
  const row = (cells: string[]) => `| ${cells.join(' | ')} |`
  const cells = results.map((result) => [`\`${result.figure.name}\``, ...toCells(result).slice(1)])
  return [row(HEAD), row(HEAD.map(() => '---')), ...cells.map(row)].join('\n')
}
