/** A slice that covers this share of its memory is not worth a copy. */
const COMPACT_SHARE = 7 / 8

/**
 * Copies a slice, because it would keep all of the memory that it is a part of. The copy is not in Node's
 * buffer pool, where it would keep its neighbors.
 */
export function compact(part: Buffer): Buffer {
  if (part.length >= part.buffer.byteLength * COMPACT_SHARE) return part
  const copy = Buffer.allocUnsafeSlow(part.length)
  part.copy(copy)
  return copy
}

/**
 * Joins two slices of the same memory by moving the first one up to the second: readers are faster with one
 * large chunk than with two. Undefined if they do not share memory, or are in the other order.
 */
export function joinInPlace(first: Buffer, second: Buffer): Buffer | undefined {
  const start = second.byteOffset - first.length
  if (first.buffer !== second.buffer || start < first.byteOffset) return undefined
  const joined = Buffer.from(second.buffer, start, first.length + second.length)
  joined.set(first)
  return joined
}
