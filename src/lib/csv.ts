// CSV (RFC 4180) that is safe to open in a spreadsheet.

type Cell = string | number | bigint

/**
 * Text that begins with one of these signs would run as a formula; an apostrophe before it makes it text.
 * Some spreadsheets separate cells at semicolons or tabs, and then do not see the quotes of the whole cell,
 * but drop those of the text.
 */
const FORMULA = /(^|[;\t\r\n])(?=[ "]*[=+\-@＝＋－＠])/g
/** LibreOffice can also separate cells at spaces, but only `=` starts a formula there. */
const FORMULA_AFTER_SPACE = / (?="*=[^ ])/g
const LEADING_CONTROL = /^(?=[\t\r])/

function quote(cell: Cell): string {
  const text = String(cell)
    .replace(FORMULA, "$1'")
    .replace(FORMULA_AFTER_SPACE, " '")
    .replace(LEADING_CONTROL, "'")
  // Quotes protect the cell in spreadsheets that separate cells at these characters.
  return /[",;\t\r\n]| [=+\-@＝＋－＠]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export const toCsv = (rows: readonly (readonly Cell[])[]): string =>
  rows.map((row) => `${row.map(quote).join(',')}\r\n`).join('')
