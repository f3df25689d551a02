// Tables for people, and lists that may be long: written part by part, so that a command never holds all of one.
import { toSerializable } from '../client/exact-json.ts'

/** Rows that are aligned with one another; a list that is longer is aligned in parts. */
const ALIGNED_ROWS = 500

/** What a column is called, and what an item has in it. */
export type Columns<T> = Record<string, (item: T) => string>

/** Columns wide enough for their widest cell. */
export function table(head: string[], rows: string[][]): string {
  return rows.length === 0 ? '(none)' : createAligner(head)([head, ...rows]).join('\n')
}

/** Lines of rows, each column at least as wide as in the rows before. */
function createAligner(head: string[]): (rows: string[][]) => string[] {
  const widths = head.map(() => 0)
  return (rows) => {
    for (const row of rows)
      for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length)
    return rows.map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
  }
}

type Slices<T> = AsyncIterable<T[]> | Iterable<T[]>

/** The text of a list in parts: one JSON array. */
export async function* jsonTexts<T>(slices: Slices<T>): AsyncGenerator<string> {
  let before = '['
  for await (const items of slices) {
    if (items.length === 0) continue
    yield before + items.map((item) => JSON.stringify(toSerializable(item))).join(',')
    before = ','
  }
  yield before === '[' ? '[]\n' : ']\n'
}

/** The text of a list in parts: a table. */
export async function* tableTexts<T>(slices: Slices<T>, columns: Columns<T>): AsyncGenerator<string> {
  const head = Object.keys(columns)
  const cells = Object.values(columns)
  const align = createAligner(head)
  let waiting = [head]
  let isEmpty = true
  for await (const items of slices) {
    for (const item of items) waiting.push(cells.map((cell) => cell(item)))
    isEmpty &&= items.length === 0
    if (waiting.length <= ALIGNED_ROWS) continue
    yield `${align(waiting).join('\n')}\n`
    waiting = []
  }
  if (isEmpty) yield '(none)\n'
  else if (waiting.length > 0) yield `${align(waiting).join('\n')}\n`
}
