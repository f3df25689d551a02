// Determines which variant of the API a server runs.
import type { Client } from '../client/index.ts'
import type { Variant } from '../contract/variants.ts'

/** Requested on first use, and again until it succeeds. */
export function createVariantFinder(client: Client): () => Promise<Variant> {
  let found: Variant | undefined
  return async () => {
    found ??= variantOf(await client.description.read())
    return found
  }
}

/** In variant A, the OpenAPI document has an operation that creates API keys. */
function variantOf(document: object): Variant {
  const { paths } = document as { paths: Record<string, object> }
  return 'post' in (paths['/tokens'] ?? {}) ? 'A' : 'B'
}
