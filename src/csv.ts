// CSV (RFC 4180) that is safe to open in a spreadsheet.

type Cell = string | number | bigint

/** A cell with one of these first characters would run as a formula; a leading apostrophe makes it text. */
const FORMULA = /^[=+\-@\t\r]/

function quote(cell: Cell): string {
  const text = String(cell).replace(FORMULA, (first) => `'${first}`)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export const toCsv = (rows: readonly (readonly Cell[])[]): string =>
  rows.map((row) => `${row.map(quote).join(',')}\r\n`).join('')
