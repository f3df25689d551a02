/** Share of a piece of memory from which on a part of it is not copied. */
const WHOLE = 7 / 8

/**
 * Copies a part of a larger piece of memory, which would be kept as long as the part is. Not to the pool of
 * Node, which would keep the neighbors of the copy.
 */
export function compact(part: Buffer): Buffer {
  if (part.length >= part.buffer.byteLength * WHOLE) return part
  const copy = Buffer.allocUnsafeSlow(part.length)
  part.copy(copy)
  return copy
}

/**
 * Joins two parts of one piece of memory, the first of which is before the second, by moving the first.
 * Readers are faster with one large chunk than with two. Undefined if they are of different memory.
 */
export function joinInPlace(first: Buffer, second: Buffer): Buffer | undefined {
  const start = second.byteOffset - first.length
  if (first.buffer !== second.buffer || start < first.byteOffset) return undefined
  const joined = Buffer.from(second.buffer, start, first.length + second.length)
  joined.set(first)
  return joined
}
