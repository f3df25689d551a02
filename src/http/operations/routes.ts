// A surface is a loop over its operations: each becomes a route that authenticates, validates, calls one handler and
// serialises the answer by its schema.
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { TObject } from 'typebox'
import type { Access, InputOf, Operation, OutputOf } from '../../contract/operation.ts'
import type { MaybePromise } from '../../directory/directory.ts'
import { Fault } from '../../domain/fault.ts'
import { checker } from '../../domain/validation.ts'
import { basePath } from '../server/paths.ts'
import { etagMatches, etagOf } from './etag.ts'
import { streamList } from './long-lists.ts'
import { readQuery } from './query.ts'
import { type Serialize, serializerFor } from './serialize.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    operation?: Operation
    /** A route that is no operation, and has a body. */
    takesBody?: true
  }
  interface FastifyRequest {
    /** What `admit` found out; its type is the surface's own. */
    caller: unknown
  }
}

/** What is known of a caller, by the access that an operation asks for. */
type Callers = { [A in Access]?: unknown }

/** One handler for each operation, by its id; it is given the caller, if it asks for one, and what the caller sent. */
export type Handlers<C extends Callers, O extends Operation> = {
  [P in O as P['id']]: (caller: C[P['access']], input: InputOf<P>) => MaybePromise<OutputOf<P>>
}

export interface OperationsOptions<C extends Callers> {
  prefix: string
  /** Where people reach the server, if that is known. */
  baseUrl: string | undefined
  /** Finds out who is asking, or throws; called before anything else is looked at. */
  authenticate: (request: FastifyRequest, reply: FastifyReply, access: Access) => MaybePromise<C[Access]>
}

interface Result {
  /** Names the next page. */
  next?: Record<string, string>
  /** The rest of a list that is too long to be written at once, in parts of the same shape. */
  more?: AsyncIterable<object>
}

type AnyHandler = (caller: unknown, input: Record<string, unknown>) => MaybePromise<Result>

const JSON_TYPE = 'application/json; charset=utf-8'

export function registerOperations<C extends Callers, const O extends readonly Operation[]>(
  server: FastifyInstance,
  operations: O,
  handlers: Handlers<C, O[number]>,
  { prefix, baseUrl, authenticate: admit }: OperationsOptions<C>,
): void {
  // A proxy may remove it from requests; links need it.
  const path = basePath(baseUrl)
  for (const operation of operations) {
    const { response, method } = operation
    const handle = (handlers as unknown as Record<string, AnyHandler>)[operation.id]
    if (!handle) throw new Error(`No handler for the operation ${operation.id}.`)
    const read = inputReader(operation)
    const serialise = serializerFor(response.schema)
    const url = prefix + operation.path.replaceAll(/\{(\w+)\}/g, ':$1')

    server.route({
      method,
      url,
      config: { operation },
      ...(operation.bodyBytesMax && { bodyLimit: operation.bodyBytesMax }),
      exposeHeadRoute: !response.stream,
      onRequest: (request, reply, done) => {
        // The router takes an empty segment for a parameter; but `/tokens/` is no path of this API.
        if (operation.params && Object.values(request.params as object).includes(''))
          throw new Fault('not_found')
        if (operation.access === 'anyone') return done()
        const caller = admit(request, reply, operation.access)
        if (caller instanceof Promise)
          return caller.then((known) => {
            request.caller = known
          })
        request.caller = caller
        done()
      },
      handler: (request, reply) => {
        const input = read(request)
        const finish = (result: Result) => {
          reply.code(response.status)
          if (response.stream) return sendStream(reply, result as unknown as AsyncIterable<string>)
          if (response.asHeaders) return reply.headers(result as Record<string, string>).send()
          if (response.paged && result.next) reply.header('link', nextLink(path + url, result.next))
          reply.header('content-type', JSON_TYPE)
          reply.header('cache-control', response.secret ? 'no-store' : 'private, no-cache')
          // Without an ETag: it would have to be known before the rest is.
          if (result.more) return sendList(reply, serialise, result, result.more)
          const body = serialise(result)
          const etag = method === 'GET' ? etagOf(body) : undefined
          if (etag) reply.header('etag', etag)
          return etag && etagMatches(request.headers['if-none-match'], etag)
            ? sendHeld(reply, body)
            : reply.send(body)
        }
        const result = handle(request.caller, input)
        // Returned only where it is sent in parts: the framework waits for the end of what is returned.
        const settle = (known: Result) => {
          const sent = finish(known)
          return known.more ? sent : undefined
        }
        return result instanceof Promise ? result.then(settle) : settle(result)
      },
    })
  }
}

/** Checks each part against its schema and lays what the contract names of it into one object. */
function inputReader({ params, query, headers, body }: Operation) {
  const check = <T extends TObject>(schema: T | undefined, place: string) => {
    if (!schema) return undefined
    const assert: (value: unknown) => void = checker(schema, place)
    const names = Object.keys(schema.properties)
    return (given: Record<string, unknown>, input: Record<string, unknown>) => {
      assert(given)
      for (const name of names) if (Object.hasOwn(given, name)) input[name] = given[name]
    }
  }
  const takeParams = check(params, '/params')
  const takeQuery = check(query, '/query')
  const takeHeaders = check(headers, '/headers')
  const takeBody = check(body, '/body')
  return (request: FastifyRequest) => {
    const input: Record<string, unknown> = {}
    takeParams?.(request.params as Record<string, unknown>, input)
    if (query) takeQuery?.(readQuery(query, request.query as Record<string, unknown>), input)
    takeHeaders?.(request.headers, input)
    // Not `??`: the body `null` was sent, and is no object.
    takeBody?.((request.body === undefined ? {} : request.body) as Record<string, unknown>, input)
    return input
  }
}

function sendList(reply: FastifyReply, serialise: Serialize, first: Result, more: AsyncIterable<object>) {
  const list = streamList(serialise, first, more)
  if (reply.request.method !== 'HEAD') return reply.send(list)
  // For HEAD there is nothing to produce.
  list.destroy()
  return reply.send(Readable.from([]))
}

/** No cache and no proxy on the way may hold an event back. */
const sendStream = (reply: FastifyReply, events: AsyncIterable<string>) =>
  reply
    .header('content-type', 'text/event-stream')
    .header('cache-control', 'no-store')
    .header('x-accel-buffering', 'no')
    .send(Readable.from(events))

/** Relative to the server, so that it is right under whatever host name the API is reached. */
const nextLink = (url: string, next: Record<string, string>) =>
  `<${url}?${new URLSearchParams(next)}>; rel="next"`

/** For HEAD the framework itself leaves the body out, and wants to see it first. */
const sendHeld = (reply: FastifyReply, body: string) => {
  reply.code(304).removeHeader('content-type')
  return reply.request.method === 'HEAD' ? reply.send(body) : reply.send()
}
