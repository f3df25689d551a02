// Determines which variant of the API a server runs.
import type { Client } from '../client/index.ts'
import type { Variant } from '../contract/variants.ts'

/** Requested on first use, and again until it succeeds. */
export function createVariantFinder(client: Client): () => Promise<Variant> {
  let variant: Variant | undefined
  return async () => {
    variant ??= detectVariant(await client.description.read())
    return variant
  }
}

/** In variant A, the OpenAPI document has an operation that creates API keys. */
function detectVariant(document: object): Variant {
  const { paths } = document as { paths: Record<string, object> }
  return 'post' in (paths['/tokens'] ?? {}) ? 'A' : 'B'
}
