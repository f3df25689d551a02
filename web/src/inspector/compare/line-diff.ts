// Differences of two texts by lines: the longest common subsequence.

export interface DiffLine {
  readonly type: 'same' | 'removed' | 'added'
  readonly text: string
}

/** A run of equal lines that is not shown. */
interface SkippedLines {
  readonly type: 'skipped'
  readonly count: number
}

/**
 * Above it, what is between the common start and the common end counts as changed: the table is quadratic.
 */
const CELLS_MAX = 4_000_000
/** Equal lines that are shown beside a difference. */
const CONTEXT_LINES = 3
/** A note about fewer lines would need as much room as they do. */
const SHOWN_LINES_MAX = 2

export function diffLines(before: string, after: string): DiffLine[] {
  const a = before.split('\n')
  const b = after.split('\n')
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1
  let end = 0
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end += 1
  return [
    ...a.slice(0, start).map(line('same')),
    ...diffMiddle(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    ...a.slice(a.length - end).map(line('same')),
  ]
}

const line = (type: DiffLine['type']) => (text: string) => ({ type, text })

function diffMiddle(a: readonly string[], b: readonly string[]): DiffLine[] {
  if (a.length * b.length > CELLS_MAX) return [...a.map(line('removed')), ...b.map(line('added'))]
  const lengths = commonLengths(a, b)
  const width = b.length + 1
  const at = (i: number, j: number) => lengths[i * width + j] ?? 0
  const lines: DiffLine[] = []
  let i = 0
  let j = 0
  while (i < a.length || j < b.length)
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ type: 'same', text: a[i] as string })
      i += 1
      j += 1
    } else if (j >= b.length || (i < a.length && at(i + 1, j) >= at(i, j + 1)))
      lines.push({ type: 'removed', text: a[i++] as string })
    else lines.push({ type: 'added', text: b[j++] as string })
  return lines
}

/** For each pair of positions, how many lines the rests have in common. */
function commonLengths(a: readonly string[], b: readonly string[]): Uint32Array {
  const width = b.length + 1
  const lengths = new Uint32Array((a.length + 1) * width)
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      lengths[i * width + j] =
        a[i] === b[j]
          ? (lengths[(i + 1) * width + j + 1] ?? 0) + 1
          : Math.max(lengths[(i + 1) * width + j] ?? 0, lengths[i * width + j + 1] ?? 0)
  return lengths
}

/** Without equal lines that are far from a difference. */
export function skipEqual(lines: readonly DiffLine[]): (DiffLine | SkippedLines)[] {
  const isNear = lines.map(() => false)
  for (const [index, { type }] of lines.entries())
    if (type !== 'same') isNear.fill(true, Math.max(0, index - CONTEXT_LINES), index + CONTEXT_LINES + 1)
  const shown: (DiffLine | SkippedLines)[] = []
  let far: DiffLine[] = []
  const flush = () => {
    if (far.length > SHOWN_LINES_MAX) shown.push({ type: 'skipped', count: far.length })
    else shown.push(...far)
    far = []
  }
  for (const [index, each] of lines.entries())
    if (isNear[index]) {
      flush()
      shown.push(each)
    } else far.push(each)
  flush()
  return shown
}
