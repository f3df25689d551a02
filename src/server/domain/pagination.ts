// Keyset pagination: each page or slice starts after the last row of the previous one.
import { setImmediate } from 'node:timers/promises'

/** Small enough not to block the event loop for long. */
export const SLICE_ROWS = 500

/** `rows` has one row more than the limit if there is a next page. */
export const toPage = <T extends { id: string }>(rows: T[], limit: number) =>
  toPageBy(rows, limit, ({ id }) => id)

/** For lists that are not sorted by id: `cursor` says where the page after a row begins. */
export function toPageBy<T>(
  rows: T[],
  limit: number,
  cursor: (row: T) => string,
): { page: T[]; next: string | null } {
  const page = rows.slice(0, limit)
  return { page, next: page.length < rows.length ? cursor(page.at(-1) as T) : null }
}

/** What a caller asks for: at most `limit` items after the cursor. */
export interface PageRequest {
  limit?: number | undefined
  cursor?: string | undefined
}

/** Limit for a request, so that a filter that matches few rows does not block others. */
const EXAMINED_ROWS_MAX = 2_000

interface FilteredPage<T> {
  limit: number
  cursor: string | undefined
  read: (page: { after: string | undefined; limit: number }) => Promise<T[]>
  filter: (rows: T[]) => Promise<T[]> | T[]
}

/** A page of the rows that pass the filter. It may have fewer rows than `limit`, or none, and a next page. */
export async function filteredPage<T extends { id: string }>({
  limit,
  cursor,
  read,
  filter,
}: FilteredPage<T>): Promise<{ page: T[]; next: string | null }> {
  const found: T[] = []
  let after = cursor
  for (let examined = 0; examined < EXAMINED_ROWS_MAX; ) {
    const size = examined === 0 ? limit + 1 : SLICE_ROWS
    const rows = await read({ after, limit: size })
    found.push(...(await filter(rows)))
    if (found.length > limit || rows.length < size) return toPage(found, limit)
    examined += rows.length
    after = rows.at(-1)?.id
    // SQLite reads synchronously: other requests are handled between two slices.
    await setImmediate()
  }
  return { page: found, next: after ?? null }
}

/** Iterates over a whole list with one slice in memory. `read` returns at most `SLICE_ROWS` rows. */
export async function* readSlices<T>(read: (last: T | undefined) => Promise<T[]>): AsyncGenerator<T[]> {
  let last: T | undefined
  for (;;) {
    const rows = await read(last)
    if (rows.length > 0) yield rows
    if (rows.length < SLICE_ROWS) return
    last = rows.at(-1)
  }
}
