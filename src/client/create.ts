// A typed client of the public and the workspace API. Its types derive from the contract; at run time it
// needs only fetch, in Node and in browsers.
import type { Operations, Routes, Variant } from './api.ts'
import { type CallOptions, type ClientOptions, createTransport } from './transport.ts'

/** The compiler compares these routes with the contract. */
const routes = {
  'workspace.read': 'GET /api/v1/workspace',
  'tokens.list': 'GET /api/v1/tokens',
  'tokens.create': 'POST /api/v1/tokens',
  'tokens.revoke': 'DELETE /api/v1/tokens/{id}',
  'usage.read': 'GET /api/v1/usage',
  'description.read': 'GET /api/v1/openapi.json',
  'tunnels.list': 'GET /workspace/v1/tunnels',
  'tunnels.read': 'GET /workspace/v1/tunnels/{id}',
  'tunnels.close': 'DELETE /workspace/v1/tunnels/{id}',
  'names.list': 'GET /workspace/v1/names',
  'edges.list': 'GET /workspace/v1/edges',
  'edge.find': 'GET /workspace/v1/edge',
} as const satisfies Routes

type OperationId = keyof typeof routes

/** Required fields of each result, to detect responses of other servers. */
const resultFields: Record<OperationId, string[]> = {
  'workspace.read': ['slug', 'name'],
  'tokens.list': ['tokens'],
  'tokens.create': ['id', 'token'],
  'tokens.revoke': ['id', 'revoked'],
  'usage.read': ['series'],
  'description.read': ['openapi', 'paths'],
  'tunnels.list': ['tunnels', 'next'],
  'tunnels.read': ['id', 'name', 'edges'],
  'tunnels.close': ['id', 'closed'],
  'names.list': ['names', 'next'],
  'edges.list': ['edges', 'next'],
  'edge.find': ['url', 'tunnelDomain'],
}

/** An operation without input, with optional input, or with required input. */
type Arguments<I> = unknown extends I
  ? [input?: undefined, options?: CallOptions]
  : Record<never, never> extends I
    ? [input?: I, options?: CallOptions]
    : [input: I, options?: CallOptions]

type Group<Id> = Id extends `${infer G}.${string}` ? G : never

/** A method for each operation of the variant, such as `client.tokens.create({ label })`. */
export type Client<V extends Variant = 'A'> = {
  [G in Group<keyof Operations[V]>]: {
    [Id in keyof Operations[V] as Id extends `${G}.${infer Method}`
      ? Method
      : never]: Operations[V][Id] extends {
      input: infer I
      result: infer R
    }
      ? (...args: Arguments<I>) => Promise<R>
      : never
  }
}

/**
 * Creates a client. The type parameter is the API variant of the server: `createClient<'B'>(…)` has no
 * methods that write.
 *
 * 429 and 503 are retried after the `Retry-After` of the response. If there was no response, reads and
 * creations are retried too: a creation carries an Idempotency-Key, so a retry never creates a second key. A
 * revocation is not retried, because a second one could not distinguish "revoked now" from "not found", nor
 * is closing a tunnel.
 */
export function createClient<V extends Variant = 'A'>(options: ClientOptions): Client<V> {
  const send = createTransport(options)
  const client: Record<string, Record<string, unknown>> = {}
  for (const [id, route] of Object.entries(routes) as [OperationId, string][]) {
    const [group = '', method = ''] = id.split('.')
    const operation = { route, resultFields: resultFields[id], usesIdempotencyKey: id === 'tokens.create' }
    client[group] ??= {}
    client[group][method] = (input?: object, callOptions: CallOptions = {}) =>
      send(operation, input, callOptions)
  }
  return client as unknown as Client<V>
}
