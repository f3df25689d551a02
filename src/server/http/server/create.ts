// The HTTP server: Fastify with limits on every input, the headers of every response, and one error handler.
// app.ts registers the APIs and pages on it.
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest, LogController } from 'fastify'
import type { Logger } from 'pino'
import type { RequestDurations } from '../../../lib/metrics/request-durations.ts'
import type { Actor } from '../../domain/context.ts'
import { Fault, invalid } from '../../domain/fault.ts'
import type { ResponseCache } from '../response-cache/cache.ts'
import type { AccessLog } from './access-log.ts'
import { parseBody } from './body.ts'
import type { ClientReader } from './client-address.ts'
import { shouldCloseAfterResponse } from './connection.ts'
import { sendFault } from './errors.ts'
import { createGuardedServer } from './guarded-server.ts'
import { acceptsPage, decodeAscii } from './paths.ts'
import { requestIds } from './request-id.ts'
import { attachDurations } from './request-metrics.ts'
import { readTraceId } from './trace-context.ts'

const BODY_BYTES_MAX = 16 * 1024
const LOGGED_PATH_MAX = 100

const CROSS_ORIGIN = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers':
    'ETag, Link, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, X-Request-Id',
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The canonical client address; honors X-Forwarded-For of trusted proxies. Use it instead of `ip`. */
    readonly clientAddress: string | undefined
    readonly clientScheme: 'http' | 'https'
  }
}

interface ServerOptions {
  log: Logger
  isStopping: () => boolean
  /** Sends Strict-Transport-Security. */
  https: boolean
  client: ClientReader
  /** Whether any proxy is trusted. */
  trustsProxies: boolean
  responseCache: ResponseCache
  accessLog: AccessLog
  durations: RequestDurations
}

export function createServer(options: ServerOptions): FastifyInstance {
  const { log, isStopping, https, client, trustsProxies, responseCache, accessLog, durations } = options
  const server = fastify({
    loggerInstance: log,
    // The access log below replaces Fastify's two lines for each request.
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    bodyLimit: BODY_BYTES_MAX,
    serverFactory: (handle) => createGuardedServer({ handle, responseCache, log, client }),
    // While draining, requests on open connections are served.
    return503OnClosing: false,
    genReqId: requestIds(),
    rewriteUrl: (request) => originForm(request.url ?? '/'),
    // The connection guard handles these.
    clientErrorHandler: () => {},
    frameworkErrors: (error, request, reply) => {
      setHeaders(request, reply)
      sendFault(error, request, reply)
    },
  }) as unknown as FastifyInstance

  server.removeAllContentTypeParsers()
  // Both, because Fastify caches the parser of a named type, but not that of `*`.
  for (const type of ['application/json', '*'])
    server.addContentTypeParser(type, { parseAs: 'buffer' }, (request, body, done) => {
      try {
        done(null, parseBody(request, body as Buffer))
      } catch (error) {
        done(error as Error)
      }
    })

  attachDurations(server, durations)
  responseCache.attach(server)
  server.decorateRequest('caller', undefined)
  server.decorateRequest('clientAddress', {
    getter() {
      return client.address(this.raw)
    },
  })
  server.decorateRequest('clientScheme', {
    getter() {
      return client.scheme(this.raw)
    },
  })

  const commonHeaders = {
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    ...(https && { 'strict-transport-security': 'max-age=31536000' }),
  }
  const apiHeaders = { ...commonHeaders, ...CROSS_ORIGIN }
  function setHeaders(request: FastifyRequest, reply: FastifyReply): void {
    const url = request.routeOptions.url ?? decodeAscii(request.url)
    reply.headers(url.startsWith('/api/') ? apiHeaders : commonHeaders).header('x-request-id', request.id)
  }

  let hasWarnedOfProxy = trustsProxies
  server.addHook('onRequest', (request, reply, done) => {
    if (!hasWarnedOfProxy && request.headers['x-forwarded-for'] !== undefined) {
      hasWarnedOfProxy = true
      log.warn(
        { from: request.clientAddress },
        'X-Forwarded-For ignored; if this is your proxy, add it to ADIT_TRUSTED_PROXIES',
      )
    }
    setHeaders(request, reply)
    requireOneHost(request)
    // Rejected here, before the body is read.
    if (request.is404 && !acceptsPage(request)) throw new Fault('not_found')
    done()
  })
  server.addHook('onSend', (request, reply, payload, done) => {
    if (isStopping() || shouldCloseAfterResponse(request.raw)) reply.header('connection', 'close')
    done(null, payload)
  })
  server.addHook('onResponse', (request, reply, done) => {
    const { url: route, config } = request.routeOptions
    const { statusCode: status, elapsedTime: ms } = reply
    ;(route === undefined ? durations.unmatched : config.durations)?.observe(status, ms)
    accessLog.record({
      requestId: request.id,
      traceId: readTraceId(request.headers.traceparent),
      method: request.method,
      route,
      path: route ? undefined : decodeAscii(request.url.split('?', 1)[0] as string).slice(0, LOGGED_PATH_MAX),
      status,
      ms,
      bytes: Number(reply.getHeader('content-length') ?? 0),
      clientIp: request.clientAddress,
      callerId: (request.caller as { actor?: Actor } | undefined)?.actor?.id,
    })
    done()
  })
  server.addHook('onClose', (_server, done) => {
    accessLog.stop()
    done()
  })
  server.setErrorHandler(sendFault)
  return server
}

/** The path of a request target in absolute form, which HTTP requires servers to accept. */
const originForm = (url: string) =>
  url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?]*/i, '') || '/'

/** HTTP/1.1 requires exactly one Host header. With two, a proxy in front may have used the other one. */
function requireOneHost({ raw, headers: { host } }: FastifyRequest): void {
  if (host === undefined && raw.httpVersionMinor > 0) throw invalid('/headers/host', 'is missing')
  if (host?.includes(',')) throw invalid('/headers/host', 'must be given once')
}
