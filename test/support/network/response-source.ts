/** Distinguishes hits from misses: the response cache and Fastify have different prefixes of request ids. */
export const sourceOf = ({ headers }: { headers: Iterable<[string, string]> }): string | undefined =>
  new Map(headers).get('x-request-id')?.replace(/-[0-9a-z]+$/, '')
