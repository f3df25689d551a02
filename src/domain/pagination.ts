// Keyset pagination: each page or slice starts after the last row of the previous one.

/** Small enough not to block the event loop for long. */
export const SLICE_ROWS = 500

/** `rows` has one row more than the limit if there is a next page. */
export function pageOf<T extends { id: string }>(
  rows: T[],
  limit: number,
): { page: T[]; next: string | null } {
  const page = rows.slice(0, limit)
  return { page, next: page.length < rows.length ? (page.at(-1)?.id as string) : null }
}

/** Iterates over a whole list with one slice in memory. `read` returns at most `SLICE_ROWS` rows. */
export async function* slicesOf<T>(read: (last: T | undefined) => Promise<T[]>): AsyncGenerator<T[]> {
  let last: T | undefined
  for (;;) {
    const rows = await read(last)
    if (rows.length > 0) yield rows
    if (rows.length < SLICE_ROWS) return
    last = rows.at(-1)
  }
}
