// The response cache: sends responses to frequent requests before Fastify runs. It stores what Fastify sent,
// for the operations in cacheable-operations.ts, so a hit and a miss get the same response.
import type { IncomingHttpHeaders, IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { createLruCache } from '../../../lib/collections/lru-cache.ts'
import type { Context } from '../../domain/context.ts'
import { bearerToken } from '../auth/authenticator.ts'
import { acceptsEncoding } from '../operations/compression.ts'
import type { AccessLog } from '../server/access-log.ts'
import { requestIds } from '../server/request-id.ts'
import { readTraceId } from '../server/trace-context.ts'
import type {
  CacheableOperation,
  RenderedResponse,
  StoredResponse,
  Validator,
} from './cacheable-operations.ts'
import { createEligibility, type EligibilityOptions } from './eligibility.ts'
import { type CachedHead, setHead, toCachedHead } from './response-head.ts'

const BYTES_MAX = 32 * 1024 * 1024
/** A larger body would evict too many others. */
const BODY_BYTES_MAX = 256 * 1024
/** Approximate size of an entry without its body. */
const ENTRY_BYTES = 1_000
/** Responses to longer URLs are not stored: a caller that varies the URL displaces the entries of others. */
const URL_CHARS_MAX = 200

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before the handler of a cacheable operation runs. */
    isFresh: Validator | undefined
  }
}

interface ResponseCacheOptions extends EligibilityOptions {
  readonly operations: CacheableOperation[]
  readonly hashSecret: (secret: string) => string
  readonly accessLog: AccessLog
}

/**
 * The last Authorization header of a connection that was verified, so that the same header is not hashed
 * again. Whether the credential is valid is checked by each request.
 */
export interface VerifiedHeader {
  authorization: string | undefined
  hash: string | undefined
}

interface CachedResponse {
  readonly head: CachedHead
  readonly body: string | Buffer
  readonly bytes: number
}

interface CachedRequest {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly startedAt: number
  readonly clientIp: string
  readonly verified: VerifiedHeader
  /** The hash of the secret in the Authorization header. */
  readonly hash: string
}

export class ResponseCache {
  readonly #byId: Map<string, CacheableOperation>
  /** Operations by method and path. */
  readonly #byRoute = new Map<string, CacheableOperation>()
  readonly #responses = createLruCache<CachedResponse & { readonly isFresh: Validator }>(
    BYTES_MAX,
    ({ bytes }) => bytes + ENTRY_BYTES,
  )
  /** Response heads of rendered operations, by operation id. */
  readonly #heads = new Map<string, CachedHead>()
  readonly #clientIp: (request: IncomingMessage) => string | undefined
  readonly #hashSecret: (secret: string) => string
  readonly #requestId = requestIds()
  readonly #accessLog: AccessLog

  constructor({ operations, hashSecret, accessLog, ...options }: ResponseCacheOptions) {
    this.#byId = new Map(operations.map((operation) => [operation.id, operation]))
    this.#hashSecret = hashSecret
    this.#clientIp = createEligibility(options)
    this.#accessLog = accessLog
  }

  /** Stores the responses of cacheable operations. Must be called before routes are registered. */
  attach(server: FastifyInstance): void {
    server.decorateRequest('isFresh', undefined)
    server.addHook('onRoute', (route) => {
      const { operation } = route.config ?? {}
      const cacheable = operation && route.method === operation.method && this.#byId.get(operation.id)
      if (cacheable) this.#attachTo(route, cacheable)
    })
  }

  /**
   * Responds and returns true, or returns false and leaves the request alone. If the body has to be read
   * first, the result is true as well, and a request that turns out to be a miss is passed to `next`.
   */
  tryRespond(
    request: IncomingMessage,
    response: ServerResponse,
    verified: VerifiedHeader,
    next: RequestListener,
  ): boolean {
    const startedAt = performance.now()
    const { method, url = '', headers } = request
    const cacheable = this.#byRoute.get(`${method} ${withoutQuery(url)}`)
    // The prebuilt head says `Connection: keep-alive`.
    if (!cacheable?.hasOrdinaryHeaders(headers) || !response.shouldKeepAlive) return false
    const clientIp = this.#clientIp(request)
    const hash = this.#credentialHash(request, verified)
    if (clientIp === undefined || hash === undefined) return false
    const cachedRequest = { request, response, startedAt, clientIp, verified, hash }
    if ('render' in cacheable) return this.#tryRender(cacheable, cachedRequest, next)
    const caller = cacheable.authenticate(hash)
    const cached = caller && this.#findFresh(cacheable.cacheKey(caller.workspaceId, url) + codingKey(headers))
    if (!cached) return false
    this.#send(cachedRequest, cached, caller.id)
    cacheable.countVerified()
    return true
  }

  #credentialHash(request: IncomingMessage, verified: VerifiedHeader): string | undefined {
    if (request.headers.authorization === verified.authorization) return verified.hash
    const secret = bearerToken(request)
    return secret === undefined ? undefined : this.#hashSecret(secret)
  }

  #attachTo(route: RouteOptions, cacheable: CacheableOperation): void {
    this.#byRoute.set(`${route.method} ${route.url}`, cacheable)
    // Created before the handler reads, because the response may lack a change that is committed meanwhile.
    if ('createValidator' in cacheable)
      route.preHandler = (request, _reply, done) => {
        request.isFresh = cacheable.createValidator(request.caller as Context)
        done()
      }
    route.onSend = (request, reply, payload, done) => {
      const isWhole = typeof payload === 'string' || Buffer.isBuffer(payload)
      if (reply.statusCode === 200 && isWhole && !reply.hasHeader('connection')) {
        if ('createValidator' in cacheable) this.#store(cacheable, request, reply, payload)
        else if (!this.#heads.has(cacheable.id)) this.#heads.set(cacheable.id, toCachedHead(reply))
      }
      done(null, payload)
    }
  }

  #store(
    { cacheKey }: StoredResponse,
    request: FastifyRequest,
    reply: FastifyReply,
    body: string | Buffer,
  ): void {
    const { isFresh, url, caller, headers } = request
    if (!isFresh || url.length > URL_CHARS_MAX) return
    const bytes = Buffer.byteLength(body)
    if (bytes > BODY_BYTES_MAX) return
    this.#responses.set(cacheKey((caller as Context).workspaceId, url) + codingKey(headers), {
      head: toCachedHead(reply),
      body,
      bytes,
      isFresh,
    })
  }

  #findFresh(cacheKey: string): CachedResponse | undefined {
    const cached = this.#responses.get(cacheKey)
    if (cached === undefined || cached.isFresh()) return cached
    this.#responses.delete(cacheKey)
    return undefined
  }

  /** Small bodies arrive in one piece, with the head of the request or right after it. */
  #tryRender(cacheable: RenderedResponse, cachedRequest: CachedRequest, next: RequestListener): boolean {
    const { request, response } = cachedRequest
    const head = this.#heads.get(cacheable.id)
    if (!head) return false
    const onBody = (chunk: Buffer) => {
      const isWhole = chunk.length === Number(request.headers['content-length'])
      // Checked again, because while the body arrived the server may have begun to stop, or the caller may
      // have been revoked.
      const isEligible = isWhole && this.#clientIp(request) !== undefined
      const caller = isEligible ? cacheable.authenticate(cachedRequest.hash) : undefined
      const body = caller && cacheable.render(chunk.toString('latin1'), caller.id)
      if (caller && body !== undefined) {
        this.#send(cachedRequest, { head, body, bytes: Buffer.byteLength(body) }, caller.id)
        cacheable.countVerified()
        return
      }
      request.pause()
      request.unshift(chunk)
      next(request, response)
    }
    // In the next tick the parser has passed on what arrived together with the head.
    process.nextTick(() => {
      const chunk: Buffer | null = request.read()
      if (chunk) onBody(chunk)
      else request.once('data', onBody)
    })
    return true
  }

  #send(
    { request, response, startedAt, clientIp, verified, hash }: CachedRequest,
    cached: CachedResponse,
    callerId: string,
  ): void {
    const { head, body, bytes } = cached
    const { method = '', headers } = request
    verified.authorization = headers.authorization
    verified.hash = hash
    const requestId = this.#requestId(request)
    setHead(response, head, bytes, requestId)
    // `latin1` is faster, and the same if each character takes one byte.
    response.end(body, bytes === body.length ? 'latin1' : 'utf8')
    const ms = performance.now() - startedAt
    head.durations?.observe(200, ms)
    this.#accessLog.record({
      requestId,
      traceId: readTraceId(headers.traceparent),
      method,
      route: head.route,
      status: 200,
      ms,
      bytes,
      clientIp,
      callerId,
    })
  }
}

/** Part of the cache key: a response is stored once for each coding. */
const codingKey = (headers: IncomingHttpHeaders): string =>
  acceptsEncoding(headers['accept-encoding'], 'gzip') ? ' gzip' : ''

function withoutQuery(url: string): string {
  const queryAt = url.indexOf('?')
  return queryAt === -1 ? url : url.slice(0, queryAt)
}
