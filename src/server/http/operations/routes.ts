// Routes from the contract: each operation becomes a route that authenticates, validates, calls one handler
// and serializes the response by its schema.
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { TObject } from 'typebox'
import type { ServedApi } from '../../../contract/apis.ts'
import type {
  Access,
  FileContent,
  InputOf,
  Operation,
  OutputOf,
  RejectionOf,
} from '../../../contract/operation.ts'
import { Fault } from '../../domain/fault.ts'
import { checker } from '../../domain/validation.ts'
import { type MaybePromise, thenMaybe } from '../../verification/verify.ts'
import { basePath } from '../server/paths.ts'
import { acceptsEncoding, compressOnce, isCompressible, isLongEnough } from './compression.ts'
import { createEtag, etagMatches } from './etag.ts'
import { streamFile, streamList } from './long-lists.ts'
import { readQuery } from './query.ts'
import { type Serialize, serializerFor } from './serialize.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    operation?: Operation
    /** The label of the route in metrics; `pages` by default. */
    surface?: string
    /** Set for a route with a body that is not an operation. */
    takesBody?: true
    /** The WWW-Authenticate header of 401 responses; `Bearer` by default. */
    challenge?: () => string
  }
  interface FastifyRequest {
    /** The result of `authenticate`; its type depends on the API. */
    caller: unknown
  }
}

/** The type of the caller, by the access that an operation requires. */
type Callers = { [A in Access]?: unknown }

/** Handlers by operation id. Each is called with the caller, if any, and the input. */
export type Handlers<C extends Callers, O extends Operation> = {
  [P in O as P['id']]: (
    caller: C[P['access']],
    input: InputOf<P>,
  ) => MaybePromise<OutputOf<P> | RejectionOf<P>>
}

interface OperationsOptions<C extends Callers> {
  /** The public URL of the server, if it is configured. */
  baseUrl: string | undefined
  /** Returns the caller, or throws. Called before the input is read. */
  authenticate: (request: FastifyRequest, reply: FastifyReply, access: Access) => MaybePromise<C[Access]>
  /**
   * Throws if the caller was revoked while its body arrived. Called for operations that may have a body; not
   * needed if their handlers authorize in the writing transaction.
   */
  reauthenticate?: (request: FastifyRequest) => MaybePromise<unknown>
  /** Decides when the handler of a queued operation runs, e.g. after others of the same caller. */
  queue?: {
    isQueued: (operation: Operation) => boolean
    run: <T>(caller: unknown, handle: () => MaybePromise<T>) => Promise<T>
  }
}

interface Result {
  /** The query of the next page. */
  next?: Record<string, string>
  /** The rest of a long list, in slices of the same shape. */
  more?: AsyncIterable<object>
}

type AnyHandler = (caller: unknown, input: Record<string, unknown>) => MaybePromise<Result>

const JSON_TYPE = 'application/json; charset=utf-8'

export function registerOperations<C extends Callers, A extends ServedApi>(
  server: FastifyInstance,
  { name, prefix, operations }: A,
  handlers: Handlers<C, A['operations'][number]>,
  { baseUrl, authenticate, reauthenticate, queue }: OperationsOptions<C>,
): void {
  // Links need the path of the base URL, which a proxy may have removed from the request.
  const path = basePath(baseUrl)
  for (const operation of operations as readonly Operation[]) {
    const { response, method } = operation
    const handle = (handlers as unknown as Record<string, AnyHandler>)[operation.id]
    if (!handle) throw new Error(`No handler for the operation ${operation.id}.`)
    const handleInTurn: AnyHandler = queue?.isQueued(operation)
      ? (caller, input) => queue.run(caller, () => handle(caller, input))
      : handle
    const read = inputReader(operation)
    const compressible = isCompressible(operation)
    const serialize = serializerFor(response.schema)
    const serializeRejection = response.rejection && serializerFor(response.rejection.schema)
    const url = prefix + operation.path.replaceAll(/\{(\w+)\}/g, ':$1')

    server.route({
      method,
      url,
      config: { operation, surface: name },
      ...(operation.bodyBytesMax && { bodyLimit: operation.bodyBytesMax }),
      exposeHeadRoute: !response.stream,
      onRequest: (request, reply, done) => {
        // The router matches an empty segment as a parameter, but `/tokens/` is not a path of this API.
        if (operation.params && Object.values(request.params as object).includes(''))
          throw new Fault('not_found')
        if (operation.access === 'anyone') return done()
        const caller = authenticate(request, reply, operation.access)
        if (caller instanceof Promise)
          return caller.then((result) => {
            request.caller = result
          })
        request.caller = caller
        done()
      },
      ...(reauthenticate &&
        operation.access !== 'anyone' &&
        method !== 'GET' && {
          preValidation: (request, _reply, done) => {
            const result = reauthenticate(request)
            if (result instanceof Promise) return result
            done()
          },
        }),
      handler: (request, reply) => {
        const input = read(request)
        const finish = (result: Result) => {
          if (serializeRejection && 'error' in result) return sendRejection(reply, serializeRejection(result))
          reply.code(response.status)
          if (response.stream) return sendStream(reply, result as unknown as AsyncIterable<string>)
          if (response.file) return sendFile(reply, result as unknown as FileContent)
          if (response.asHeaders) return reply.headers(result as Record<string, string>).send()
          if (response.paged && result.next) reply.header('link', nextLink(path + url, result.next))
          reply.header('content-type', JSON_TYPE)
          reply.header('cache-control', response.secret ? 'no-store' : 'private, no-cache')
          // A long list has no ETag, which would need the whole body before the first slice is sent.
          if (result.more) return sendList(reply, serialize, result, result.more)
          const body = serialize(result)
          if (method !== 'GET') return reply.send(body)
          const etag = createEtag(body)
          if (compressible && isLongEnough(body)) {
            reply.header('vary', 'Accept-Encoding')
            if (acceptsEncoding(request.headers['accept-encoding'], 'gzip'))
              return sendCompressed(reply, etag, body)
          }
          return sendTagged(reply, etag, body)
        }
        // The reply is returned only if it is streamed, because Fastify awaits the end of a returned reply.
        const settle = (result: Result): unknown => {
          const sent = finish(result)
          return result.more || response.file || sent instanceof Promise ? sent : undefined
        }
        return thenMaybe(handleInTurn(request.caller, input), settle)
      },
    })
  }
}

/** Validates each part against its schema, and merges the declared properties into one object. */
function inputReader({ params, query, headers, body }: Operation) {
  const check = <T extends TObject>(schema: T | undefined, pointer: string) => {
    if (!schema) return undefined
    const assert: (value: unknown) => void = checker(schema, pointer)
    const names = Object.keys(schema.properties)
    return (part: Record<string, unknown>, input: Record<string, unknown>) => {
      assert(part)
      for (const name of names) if (Object.hasOwn(part, name)) input[name] = part[name]
    }
  }
  const readParams = check(params, '/params')
  const readQueryInto = check(query, '/query')
  const readHeaders = check(headers, '/headers')
  const readBody = check(body, '/body')
  return (request: FastifyRequest) => {
    const input: Record<string, unknown> = {}
    readParams?.(request.params as Record<string, unknown>, input)
    if (query) readQueryInto?.(readQuery(query, request.query as Record<string, unknown>), input)
    readHeaders?.(request.headers, input)
    // Not `??`: a body of `null` was sent, and must fail validation.
    readBody?.((request.body === undefined ? {} : request.body) as Record<string, unknown>, input)
    return input
  }
}

const sendRejection = (reply: FastifyReply, body: string) =>
  reply.code(400).header('content-type', JSON_TYPE).header('cache-control', 'no-store').send(body)

function sendList(reply: FastifyReply, serialize: Serialize, first: Result, more: AsyncIterable<object>) {
  const list = streamList(serialize, first, more)
  if (reply.request.method !== 'HEAD') return reply.send(list)
  list.destroy()
  return reply.send(Readable.from([]))
}

const sendFile = (reply: FastifyReply, { type, name, chunks }: FileContent) =>
  reply
    .header('content-type', `${type}; charset=utf-8`)
    .header('content-disposition', `attachment; filename="${name}"`)
    .header('cache-control', 'no-store')
    .send(streamFile(chunks))

/** No cache or proxy may buffer events. */
const sendStream = (reply: FastifyReply, events: AsyncIterable<string>) =>
  reply
    .header('content-type', 'text/event-stream')
    .header('cache-control', 'no-store')
    .header('x-accel-buffering', 'no')
    .send(Readable.from(events))

/** The link is relative, so that it is valid under every host name of the server. */
const nextLink = (url: string, next: Record<string, string>) =>
  `<${url}?${new URLSearchParams(next)}>; rel="next"`

/** The ETag is weak, because the bytes differ from those of the uncompressed response. */
async function sendCompressed(reply: FastifyReply, etag: string, body: string): Promise<void> {
  const compressed = await compressOnce(etag, body)
  reply.header('content-encoding', 'gzip')
  sendTagged(reply, `W/${etag}`, compressed)
}

/** Sends 304 if the client has this body. For HEAD, Fastify takes the length of the body and removes it. */
function sendTagged(reply: FastifyReply, etag: string, body: string | Buffer): FastifyReply {
  const { method, headers } = reply.request
  reply.header('etag', etag)
  if (!etagMatches(headers['if-none-match'], etag)) return reply.send(body)
  reply.code(304).removeHeader('content-type').removeHeader('content-encoding')
  return method === 'HEAD' ? reply.send(body) : reply.send()
}
