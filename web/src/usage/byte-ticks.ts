// Round marks for an axis of bytes: halves and doubles of a unit, where a chart would mark off thousands.

const MARKS_MOST = 4

/** From zero to the first mark that is not below `most`. */
export function byteTicks(most: number): number[] {
  const step = 2 ** Math.max(0, Math.ceil(Math.log2(Math.max(1, most) / MARKS_MOST)))
  const count = Math.max(1, Math.ceil(most / step))
  return Array.from({ length: count + 1 }, (_, index) => index * step)
}
