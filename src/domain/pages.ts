// Pages of a list whose ids sort: one row more than asked for tells whether there is a next page.

export function pageOf<T extends { id: string }>(
  rows: T[],
  limit: number,
): { page: T[]; next: string | null } {
  const page = rows.slice(0, limit)
  return { page, next: page.length < rows.length ? (page.at(-1)?.id as string) : null }
}
