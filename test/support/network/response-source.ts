import type { TestResponse } from '../api/server.ts'

/** Distinguishes hits from misses: the response cache and Fastify have different prefixes of request ids. */
export const readSource = ({ headers }: { headers: Iterable<[string, string]> }): string | undefined =>
  new Map(headers).get('x-request-id')?.replace(/-[0-9a-z]+$/, '')

/** The parts of a response that are the same in a hit and a miss. */
export const stableContent = ({ status, headers, text }: TestResponse) => ({
  status,
  text,
  headers: [...headers].filter(([name]) => name !== 'x-request-id' && name !== 'date'),
})
