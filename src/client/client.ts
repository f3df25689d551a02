// A typed client of the public API. What it offers is read off the contract by the compiler; when it runs it needs fetch
// and nothing else, in Node and in a browser.
import type { Static, TSchema } from 'typebox'
import type { Operation, OutputOf } from '../contract/operation.ts'
import type { Variant, variants } from '../contract/variants.ts'
import { parseExact, type Received } from './exact-json.ts'
import { AditError, type ApiFault, type Fault } from './faults.ts'
import { outgoing } from './request.ts'

type OperationsOf<V extends Variant> = (typeof variants)[V][number]
type AnyOperation = OperationsOf<Variant>

/** Method and path of every operation, compared with the contract by the compiler. */
const routes = {
  'workspace.read': 'GET /workspace',
  'tokens.list': 'GET /tokens',
  'tokens.create': 'POST /tokens',
  'tokens.revoke': 'DELETE /tokens/{id}',
  'usage.read': 'GET /usage',
  'description.read': 'GET /openapi.json',
} as const satisfies { [O in AnyOperation as O['id']]: `${O['method']} ${O['path']}` }

type OperationId = keyof typeof routes

/** By which an answer is known for what it is. */
const members: Record<OperationId, string[]> = {
  'workspace.read': ['slug', 'name'],
  'tokens.list': ['tokens'],
  'tokens.create': ['id', 'token'],
  'tokens.revoke': ['id', 'revoked'],
  'usage.read': ['series'],
  'description.read': ['openapi', 'paths'],
}

type PartOf<O extends Operation, P extends 'params' | 'query' | 'body'> = O[P] extends TSchema
  ? Static<O[P]>
  : unknown
type InputOf<O extends Operation> = PartOf<O, 'params'> & PartOf<O, 'query'> & PartOf<O, 'body'>

export interface CallOptions {
  /** Ends the call, and the waiting between its attempts. */
  signal?: AbortSignal
}

/** Nothing to give, nothing that must be given, or something that must. */
type Arguments<I> = unknown extends I
  ? [input?: undefined, options?: CallOptions]
  : Record<never, never> extends I
    ? [input?: I, options?: CallOptions]
    : [input: I, options?: CallOptions]

type Group<Id extends string> = Id extends `${infer G}.${string}` ? G : never

/** `client.tokens.create({ label })`, for each operation that the variant has. */
export type Client<V extends Variant = 'A'> = {
  [G in Group<OperationsOf<V>['id']>]: {
    [O in OperationsOf<V> as O['id'] extends `${G}.${infer Verb}` ? Verb : never]: (
      ...given: Arguments<InputOf<O>>
    ) => Promise<Received<OutputOf<O>>>
  }
}

export interface ClientOptions {
  /** Where the server is, e.g. `https://adit.example.com`. */
  baseUrl: string
  apiKey: string
  /** How long one attempt may take. */
  timeoutMs?: number
  /** How often a call is tried again at the most. */
  retries?: number
  fetch?: typeof fetch
}

const PAUSE_FIRST_MS = 250
/** Whoever asks to wait for longer is not waited for: the caller should know. */
const PAUSE_MAX_MS = 30_000

/**
 * Says which variant the server runs by its type: `createClient<'B'>(…)` has nothing that writes.
 *
 * Busy and unavailable servers (429, 503) are asked again, after as long as they say. Without any answer, so are reads and
 * creations, which carry an Idempotency-Key: a creation that is tried again mints nothing twice. A revocation is not, because
 * a second one could not tell "done" from "never was".
 */
export function createClient<V extends Variant = 'A'>(options: ClientOptions): Client<V> {
  const send = createSender(options)
  const client: Record<string, Record<string, unknown>> = {}
  for (const [id, route] of Object.entries(routes) as [OperationId, string][]) {
    const [group = '', verb = ''] = id.split('.')
    client[group] ??= {}
    client[group][verb] = (input?: object, given: CallOptions = {}) => send(id, route, input, given)
  }
  return client as unknown as Client<V>
}

function createSender({
  baseUrl,
  apiKey,
  timeoutMs = 10_000,
  retries = 3,
  fetch: ask = fetch,
}: ClientOptions) {
  const base = URL.parse(baseUrl)
  if (!base || !/^https?:$/.test(base.protocol) || base.username || base.password || base.search || base.hash)
    throw new TypeError(
      'baseUrl must be the address of a server, such as https://adit.example.com, and nothing more.',
    )
  // Not quoted: it is a secret, even a broken one.
  if (!/^[\x21-\x7e]+$/.test(apiKey))
    throw new TypeError('apiKey cannot be an API key: it has other characters in it.')
  const root = `${base.href.replace(/\/$/, '')}/api/v1`

  async function attempt(
    request: RequestInit & { path: string; id: OperationId },
    given: AbortSignal | undefined,
  ): Promise<object> {
    const { path, id, ...init } = request
    const timeout = AbortSignal.timeout(timeoutMs)
    const signal = given ? AbortSignal.any([given, timeout]) : timeout
    let response: Response
    let text: string
    try {
      response = await ask(root + path, { ...init, signal, redirect: 'manual' })
      text = await response.text()
    } catch (cause) {
      throw new AditError(noAnswer(base?.origin ?? baseUrl, cause, { given, timeout, timeoutMs }), { cause })
    }
    const answer = parseExact(text)
    if (response.ok && answer && members[id].every((member) => member in answer)) return answer
    throw new AditError(faultOf(response, answer), { response })
  }

  return async (id: OperationId, route: string, input: object | undefined, { signal }: CallOptions) => {
    const { method, path, body } = outgoing(route, requirePath(input))
    const headers: Record<string, string> = { authorization: `Bearer ${apiKey}` }
    if (body !== undefined) headers['content-type'] = 'application/json'
    // One for all attempts of the call.
    if (id === 'tokens.create') headers['idempotency-key'] = crypto.randomUUID()
    const request = { id, path, method, headers, ...(body !== undefined && { body }) }
    for (let tried = 0; ; tried++) {
      try {
        return await attempt(request, signal)
      } catch (error) {
        if (!(error instanceof AditError) || tried >= retries || !mayRetry(error, method)) throw error
        const ms = error.retryAfterS === undefined ? PAUSE_FIRST_MS * 2 ** tried : error.retryAfterS * 1000
        if (ms > PAUSE_MAX_MS) throw error
        await pause(ms * (0.75 + Math.random() / 2), signal, error)
      }
    }
  }
}

function mayRetry({ fault }: AditError, method: string): boolean {
  if (fault.error === 'rate_limited' || fault.error === 'unavailable') return true
  const isUncertain =
    fault.error === 'unreachable' || fault.error === 'timed_out' || fault.error === 'unreadable'
  return isUncertain && method !== 'DELETE'
}

function noAnswer(
  origin: string,
  cause: unknown,
  { given, timeout, timeoutMs }: { given: AbortSignal | undefined; timeout: AbortSignal; timeoutMs: number },
): Fault {
  if (given?.aborted) return { error: 'aborted', message: 'The call was given up.' }
  if (timeout.aborted)
    return { error: 'timed_out', message: `${origin} did not answer within ${timeoutMs / 1000} s.` }
  const { cause: deeper = cause } = cause as { cause?: unknown }
  const { message, code } = deeper as { message?: string; code?: string }
  const reason = (message || code || String(deeper)).replace(/\.$/, '')
  return { error: 'unreachable', message: `${origin} cannot be reached: ${reason}.` }
}

/** What the errors of the API carry; whatever has another shape is somebody else's. */
const carried: Record<ApiFault['error'], (answer: { details?: unknown; message?: unknown }) => boolean> = {
  invalid_request: ({ details }) => Array.isArray(details),
  not_found: () => true,
  internal: () => true,
  unauthorized: hasMessage,
  forbidden: hasMessage,
  conflict: hasMessage,
  idempotency_mismatch: hasMessage,
  rate_limited: hasMessage,
  unavailable: hasMessage,
}

function hasMessage({ message }: { message?: unknown }): boolean {
  return typeof message === 'string'
}

/** A proxy in front of a server answers too, but not in this API's words. */
function faultOf(response: Response, answer: object | undefined): Fault {
  const { error } = (answer ?? {}) as { error?: unknown }
  if (
    typeof error === 'string' &&
    Object.hasOwn(carried, error) &&
    carried[error as ApiFault['error']](answer ?? {})
  )
    return answer as ApiFault
  const { status } = response
  if (status === 401)
    return { error: 'unauthorized', message: 'The key was refused by something in front of the server.' }
  if (status === 429) return { error: 'rate_limited', message: 'Too many requests.' }
  // Whether the server has acted is not known then.
  if (status >= 502 && status <= 504)
    return {
      error: 'unreachable',
      message: `What is in front of the server cannot reach it (status ${status}).`,
    }
  if (response.type === 'opaqueredirect' || (status >= 300 && status < 400)) {
    const to = response.headers.get('location')
    return {
      error: 'unreadable',
      message: `The server is elsewhere${to ? `: ${to}` : ''}. Use its own address.`,
    }
  }
  return {
    error: 'unreadable',
    message: `The answer (status ${status}) is none of Adit’s. Check the address of the server.`,
  }
}

/** What would turn into another path, or into none. */
function requirePath(input: object | undefined): object | undefined {
  const { id } = (input ?? {}) as { id?: unknown }
  if (id === '' || id === '.' || id === '..') throw new AditError({ error: 'not_found' })
  if (typeof id === 'string' && !id.isWellFormed())
    throw new AditError({
      error: 'invalid_request',
      details: [{ path: '/params/id', message: 'must be well-formed text' }],
    })
  return input
}

/** Ends at once when the caller gives up; what went wrong before is then the cause. */
function pause(ms: number, signal: AbortSignal | undefined, cause: AditError): Promise<void> {
  return new Promise((resolve, reject) => {
    const giveUp = () => {
      clearTimeout(timer)
      reject(new AditError({ error: 'aborted', message: 'The call was given up.' }, { cause }))
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', giveUp)
      resolve()
    }, ms)
    if (signal?.aborted) giveUp()
    signal?.addEventListener('abort', giveUp, { once: true })
  })
}
