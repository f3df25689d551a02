// Pages and slices of a list whose rows sort by a key: each begins after the last row of the one before.

/** Few enough that reading and writing them holds up nobody for long. */
export const SLICE_ROWS = 500

/** One row more than asked for tells whether there is a next page. */
export function pageOf<T extends { id: string }>(
  rows: T[],
  limit: number,
): { page: T[]; next: string | null } {
  const page = rows.slice(0, limit)
  return { page, next: page.length < rows.length ? (page.at(-1)?.id as string) : null }
}

/** A whole list, of which never more than a slice is in memory. `read` returns at most `SLICE_ROWS` rows. */
export async function* slicesOf<T>(read: (last: T | undefined) => Promise<T[]>): AsyncGenerator<T[]> {
  let last: T | undefined
  for (;;) {
    const rows = await read(last)
    if (rows.length > 0) yield rows
    if (rows.length < SLICE_ROWS) return
    last = rows.at(-1)
  }
}
