// A table that stays at the top of the terminal while lines scroll below it. In a pipe, and on a terminal
// that is too small, it is printed when every row has changed once.
import type { Io } from '../io.ts'
import { joinLines } from '../style.ts'
import { alignTable, type Columns } from '../table.ts'

/** Lines below the table without which pinning is of no use. */
const LINES_BELOW_MIN = 5

export function openPinnedTable<T>(io: Io, rows: readonly T[], columns: Columns<T>) {
  const { stderr } = process
  const height = rows.length + 2
  const isPinned = () => io.terminal.canPin && (stderr.rows ?? 0) >= height + LINES_BELOW_MIN
  let changes = 0
  let isDrawn = false

  /** The scroll region begins below the table; drawing leaves the cursor where it is. */
  function draw(): void {
    const region = isDrawn ? '' : `\u001b[2J\u001b[${height + 1};${stderr.rows}r\u001b[${height + 1};1H`
    const lines = [...alignTable(rows, columns, io.terminal.columns), []]
    const text = lines.map((line, index) => `\u001b[${index + 1};1H\u001b[K${io.format(line)}`)
    stderr.write(`${region}\u001b7${text.join('')}\u001b8`)
    isDrawn = true
  }
  const redraw = () => {
    isDrawn = false
    if (isPinned()) draw()
  }
  const unpin = () => {
    if (isDrawn) stderr.write(`\u001b[r\u001b[${stderr.rows};1H\n`)
    isDrawn = false
  }
  if (io.terminal.canPin) {
    process.on('SIGWINCH', redraw)
    process.once('exit', unpin)
    if (isPinned()) draw()
  }
  return {
    update(): void {
      changes += 1
      if (isPinned()) draw()
      else if (changes === rows.length && !io.json)
        io.data(undefined, joinLines(alignTable(rows, columns, undefined)))
    },
    close(): void {
      process.off('SIGWINCH', redraw)
      unpin()
    },
  }
}
