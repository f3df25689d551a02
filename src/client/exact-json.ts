// JSON whose integers stay exact. Counts may pass 2^53, where a plain reader would round them.

/** A bigint where a number would not be exact, and a number everywhere else. */
export type Count = number | bigint

/** What arrives of an answer of the contract, in which counts are bigints. */
export type Received<T> = T extends bigint
  ? Count
  : T extends readonly (infer E)[]
    ? Received<E>[]
    : T extends object
      ? { [K in keyof T]: Received<T[K]> }
      : T

/** An object or a list; undefined where the text is neither. */
export function parseExact(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text, exact)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/** Not in the compiler's library yet, and not in every browser: there nothing is written. */
const { rawJSON } = JSON as unknown as { rawJSON(text: string): object }

/** The other way: a copy that `JSON.stringify` writes exactly. */
export function writable(value: unknown): unknown {
  if (typeof value === 'bigint') return rawJSON(String(value))
  if (Array.isArray(value)) return value.map(writable)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([member, inner]) => [member, writable(inner)]))
}

/** Browsers that do not give the source of a number yet show it rounded, as they always did. */
function exact(_key: string, value: unknown, context?: { source?: string }): unknown {
  const isRounded = typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)
  return isRounded && context?.source && /^-?\d+$/.test(context.source) ? BigInt(context.source) : value
}
