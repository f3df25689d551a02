// Counts past 2^53, which are bigints here, go onto the wire as the plain digits that they were received as.

/** Not in the compiler's library yet. */
const { rawJSON } = JSON as unknown as { rawJSON(text: string): object }

/** A copy that `JSON.stringify` writes exactly. */
export function writable(value: unknown): unknown {
  if (typeof value === 'bigint') return rawJSON(String(value))
  if (Array.isArray(value)) return value.map(writable)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([member, inner]) => [member, writable(inner)]))
}
