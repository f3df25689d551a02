// Tables for terminals, and lists of any length: written in slices, so that memory use is bounded.
import { toSerializable } from '../client/exact-json.ts'
import { printableJson } from '../contract/text.ts'
import { oneLine } from '../lib/net/untrusted-text.ts'
import { bold, type Styled } from './style.ts'

/** Rows that are aligned with one another; a longer list is aligned in parts. */
const ALIGNED_ROWS = 500
const GAP = '  '
const SHRUNK_MIN = 8

export type Cell = string | Styled

/** The head of each column, and how to read its cell from an item. */
export type Columns<T> = Record<string, (item: T) => Cell>

export interface ListOptions<T> {
  readonly columns: Columns<T>
  /** Shown for an empty list, e.g. `No API keys.` */
  readonly empty: string
  /** Columns to shorten, in this order, if the table is wider than the terminal. Identifiers stay whole. */
  readonly shrink?: readonly string[]
}

export type Slices<T> = AsyncIterable<T[]> | Iterable<T[]>

/** The JSON array of a list, in parts. */
export async function* jsonTexts<T>(slices: Slices<T>): AsyncGenerator<string> {
  let before = '['
  for await (const items of slices) {
    if (items.length === 0) continue
    yield before + items.map((item) => printableJson(toSerializable(item))).join(',')
    before = ','
  }
  yield before === '[' ? '[]\n' : ']\n'
}

/** The table of a list in parts, each an array of lines. `width` is undefined if lines are not truncated. */
export async function* tableLines<T>(
  slices: Slices<T>,
  { columns, empty, shrink = [] }: ListOptions<T>,
  width: number | undefined,
): AsyncGenerator<Cell[][]> {
  const heads = Object.keys(columns)
  const cells = Object.values(columns)
  const align = createAligner(heads, shrink, width)
  let pending: Cell[][] = [heads.map(bold)]
  let isEmpty = true
  for await (const items of slices) {
    for (const item of items) pending.push(cells.map((cell) => cell(item)))
    isEmpty &&= items.length === 0
    if (pending.length <= ALIGNED_ROWS) continue
    yield align(pending)
    pending = []
  }
  if (isEmpty) yield [[empty]]
  else if (pending.length > 0) yield align(pending)
}

/** A short table as lines, with its head. */
export function alignTable<T>(items: readonly T[], columns: Columns<T>, width: number | undefined): Cell[][] {
  const heads = Object.keys(columns)
  const rows = items.map((item) => Object.values(columns).map((cell) => cell(item)))
  return createAligner(heads, heads.toReversed(), width)([heads.map(bold), ...rows])
}

/** Pads cells, each column at least as wide as in the rows before. */
function createAligner(heads: string[], shrink: readonly string[], width = Number.POSITIVE_INFINITY) {
  const contentWidths = heads.map(() => 0)
  return (rows: Cell[][]): Cell[][] => {
    const clean = rows.map((row) => row.map(toClean))
    for (const row of clean)
      for (const [column, { text }] of row.entries())
        contentWidths[column] = Math.max(contentWidths[column] ?? 0, charCount(text))
    const widths = fit(heads, contentWidths, shrink, width)
    return clean.map((row) =>
      row.flatMap(({ text, style }, column) => {
        const isLast = column === row.length - 1
        const shown = truncate(text, widths[column] ?? 0)
        const padding = isLast ? '' : ' '.repeat((widths[column] ?? 0) - charCount(shown)) + GAP
        return [style ? { style, text: shown } : shown, padding]
      }),
    )
  }
}

function fit(heads: string[], contentWidths: number[], shrink: readonly string[], width: number): number[] {
  const widths = [...contentWidths]
  let excess = widths.reduce((sum, column) => sum + column, GAP.length * (widths.length - 1)) - width
  for (const head of shrink) {
    const column = heads.indexOf(head)
    const current = widths[column] ?? 0
    const cut = Math.max(0, Math.min(excess, current - Math.max(SHRUNK_MIN, head.length)))
    widths[column] = current - cut
    excess -= cut
  }
  return widths
}

const toClean = (cell: Cell): { text: string; style?: Styled['style'] } =>
  typeof cell === 'string' ? { text: oneLine(cell) } : { text: oneLine(cell.text), style: cell.style }

const charCount = (text: string) => [...text].length

const truncate = (text: string, width: number) =>
  charCount(text) <= width
    ? text
    : `${[...text]
        .slice(0, width - 1)
        .join('')
        .trimEnd()}…`
