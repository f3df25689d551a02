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

/** Browsers that do not give the source of a number yet show it rounded, as they always did. */
function exact(_key: string, value: unknown, context?: { source?: string }): unknown {
  const isRounded = typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)
  return isRounded && context?.source && /^-?\d+$/.test(context.source) ? BigInt(context.source) : value
}
