// Lists of the workspace API in pages.
import { AditError } from '../../client/index.ts'
import { PAGE_ITEMS } from '../../contract/limits.ts'
import { CommandError } from '../errors.ts'

interface PageRequest {
  limit: number
  cursor?: string
}

/** Reads one page after the other, and returns the items of each. */
export async function* readPages<P extends { next: string | null }, T>(
  read: (page: PageRequest) => Promise<P>,
  items: (page: P) => T[],
): AsyncGenerator<T[]> {
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await read({ limit: PAGE_ITEMS.max, ...(cursor !== undefined && { cursor }) }).catch(explain)
    yield items(page)
    cursor = page.next
  }
}

export const isNotFound = (error: unknown): boolean =>
  error instanceof AditError && error.fault.error === 'not_found'

/** Each list has something: without it, the route is missing. */
function explain(error: unknown): never {
  if (!isNotFound(error)) throw error
  throw new CommandError('not_supported', 'This server cannot list them: it runs an earlier version of Adit.')
}
