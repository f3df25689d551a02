// JSON with exact integers: counts may exceed 2^53, where JSON.parse rounds them.

/** A bigint if a number would not be exact, and a number otherwise. */
export type Count = number | bigint

/** A response as the client returns it: bigints of the contract become counts. */
export type Received<T> = T extends bigint
  ? Count
  : T extends readonly (infer E)[]
    ? Received<E>[]
    : T extends object
      ? { [K in keyof T]: Received<T[K]> }
      : T

/** Parses an object or array; undefined if the text is neither. */
export function parseExact(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text, exact)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/** Some browsers lack it; there, nothing with bigints is serialized. TypeScript does not declare it yet. */
const { rawJSON } = JSON as unknown as { rawJSON(text: string): object }

/** A copy that `JSON.stringify` writes with exact integers. */
export function toSerializable(value: unknown): unknown {
  if (typeof value === 'bigint') return rawJSON(String(value))
  if (Array.isArray(value)) return value.map(toSerializable)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, toSerializable(inner)]))
}

/** Browsers that do not pass the source text of a number return it rounded. */
function exact(_key: string, value: unknown, context?: { source?: string }): unknown {
  const isRounded = typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)
  return isRounded && context?.source && /^-?\d+$/.test(context.source) ? BigInt(context.source) : value
}
