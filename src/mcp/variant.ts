// Which variant a server runs, where only its address is known.
import type { Client } from '../client/index.ts'
import type { Variant } from '../contract/variants.ts'

/** Asked when it is first needed, and again as long as there is no answer. */
export function createVariantFinder(client: Client): () => Promise<Variant> {
  let found: Variant | undefined
  return async () => {
    found ??= variantOf(await client.description.read())
    return found
  }
}

/** A server tells by its description whether keys can mint keys there. */
function variantOf(document: object): Variant {
  const { paths } = document as { paths: Record<string, object> }
  return 'post' in (paths['/tokens'] ?? {}) ? 'A' : 'B'
}
