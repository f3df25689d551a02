// The nearest known name to a mistyped one.
const DISTANCE_MAX = 3

export function nearest(typed: string, known: readonly string[]): string | undefined {
  // A short word is within a few edits of every other short word.
  const limit = Math.min(DISTANCE_MAX, Math.ceil(typed.length / 3))
  let best: { name: string; distance: number } | undefined
  for (const name of known) {
    const distance = editDistance(typed, name)
    if (distance <= limit && distance < (best?.distance ?? Number.POSITIVE_INFINITY))
      best = { name, distance }
  }
  return best?.name
}

/** Optimal string alignment: insertions, deletions, substitutions, and swaps of neighbors count 1 each. */
function editDistance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, column) => column)]
  const at = (row: number, column: number) => rows[row]?.[column] ?? 0
  for (let row = 1; row <= a.length; row++) {
    rows[row] = [row]
    for (let column = 1; column <= b.length; column++) {
      const isSame = a[row - 1] === b[column - 1]
      const isSwap = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      const best = Math.min(
        at(row - 1, column) + 1,
        at(row, column - 1) + 1,
        at(row - 1, column - 1) + (isSame ? 0 : 1),
      )
      ;(rows[row] as number[])[column] = isSwap ? Math.min(best, at(row - 2, column - 2) + 1) : best
    }
  }
  return at(a.length, b.length)
}
