// Which variant a server runs, where only its address is known.
import { AditError, type Client } from '../client/index.ts'
import type { Variant } from '../contract/variants.ts'

/** Asked when it is first needed, and again as long as there is no answer. */
export function createVariantFinder(client: Client, baseUrl: string): () => Promise<Variant> {
  let found: Variant | undefined
  return async () => {
    found ??= variantOf(await client.description.read(), baseUrl)
    return found
  }
}

/** A server tells by its description whether keys can mint keys there. */
function variantOf(document: object, baseUrl: string): Variant {
  const { paths } = document as { paths?: Record<string, object> }
  if (!paths?.['/workspace'])
    throw new AditError({ error: 'unreadable', message: `What answers at ${baseUrl} is no Adit.` })
  return 'post' in (paths['/tokens'] ?? {}) ? 'A' : 'B'
}
