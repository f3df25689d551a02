// CSV as RFC 4180 has it, safe to open in a spreadsheet.

type Cell = string | number | bigint

/** A spreadsheet would run what begins so; the apostrophe makes it text. */
const FORMULA = /^[=+\-@\t\r]/

function quoted(cell: Cell): string {
  const text = String(cell).replace(FORMULA, (first) => `'${first}`)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export const toCsv = (rows: readonly (readonly Cell[])[]): string =>
  rows.map((row) => `${row.map(quoted).join(',')}\r\n`).join('')
