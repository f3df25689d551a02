// The HTTP server: Fastify with every input bounded, the headers that every answer carries, and one way to fail.
// The surfaces (public, ops, docs) are mounted on it by app.ts.
import { randomBytes } from 'node:crypto'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest, LogController } from 'fastify'
import type { Logger } from 'pino'
import type { Actor } from '../domain/context.ts'
import { Fault, invalid } from '../domain/fault.ts'
import { parseBody } from './body.ts'
import { sendFault } from './errors.ts'
import { createListener } from './listener.ts'

const BODY_BYTES_MAX = 16 * 1024
const LOGGED_PATH_MAX = 100
const REQUEST_ID = /^[\w.:-]{1,64}$/

const CROSS_ORIGIN = { 'access-control-allow-origin': '*' }
const EXPOSED = 'ETag, Link, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, X-Request-Id'

export interface ServerOptions {
  log: Logger
  isStopping: () => boolean
  /** Browsers are told to stay on https where that is how they came. */
  https: boolean
  /** Whose word on where a request came from is taken; nobody's where the list is empty. */
  trustedProxies: readonly string[]
}

export function createServer({ log, isStopping, https, trustedProxies }: ServerOptions): FastifyInstance {
  const server = fastify({
    loggerInstance: log,
    // One line a request, written below, instead of two.
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    bodyLimit: BODY_BYTES_MAX,
    trustProxy: trustedProxies.length > 0 ? [...trustedProxies] : false,
    serverFactory: (handle) => createListener(handle, log),
    // While draining, a request that still comes on an open connection is served like any other.
    return503OnClosing: false,
    genReqId: requestIds(),
    rewriteUrl: (request) => pathOf(request.url ?? '/'),
    // The listener answers these itself.
    clientErrorHandler: () => {},
    frameworkErrors: (error, request, reply) => {
      setHeaders(request, reply)
      sendFault(error, request, reply)
    },
  }) as unknown as FastifyInstance

  server.removeAllContentTypeParsers()
  server.addContentTypeParser('*', { parseAs: 'buffer' }, (request, body, done) => {
    try {
      done(null, parseBody(request, body as Buffer))
    } catch (error) {
      done(error as Error)
    }
  })

  server.decorateRequest('caller', undefined)

  const everyAnswer = {
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    ...(https && { 'strict-transport-security': 'max-age=31536000' }),
  }
  function setHeaders(request: FastifyRequest, reply: FastifyReply): void {
    reply.headers(everyAnswer).header('x-request-id', request.id)
    if (isApi(request.routeOptions.url ?? request.url))
      reply.headers(CROSS_ORIGIN).header('access-control-expose-headers', EXPOSED)
  }

  let toldOfProxy = trustedProxies.length > 0
  server.addHook('onRequest', async (request, reply) => {
    if (!toldOfProxy && request.headers['x-forwarded-for'] !== undefined) {
      toldOfProxy = true
      log.warn(
        { from: request.ip },
        'X-Forwarded-For is ignored; if this is your proxy, name it in ADIT_TRUSTED_PROXIES',
      )
    }
    setHeaders(request, reply)
    requireOneHost(request)
    // Before the body of a request to nowhere is looked at.
    if (request.is404) throw new Fault('not_found')
  })
  server.addHook('onSend', (_request, reply, payload, done) => {
    if (isStopping()) reply.header('connection', 'close')
    done(null, payload)
  })
  server.addHook('onResponse', async (request, reply) => {
    // The pattern of the route rather than the path: a path can hold what somebody pasted into it by mistake.
    const { url: route } = request.routeOptions
    request.log.info(
      {
        method: request.method,
        ...(route ? { route } : { path: request.url.split('?', 1)[0]?.slice(0, LOGGED_PATH_MAX) }),
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime * 10) / 10,
        from: request.ip,
        by: (request.caller as { actor?: Actor } | undefined)?.actor?.id,
      },
      'answered',
    )
  })
  server.setErrorHandler(sendFault)
  // For what a plugin does not find: a file of the documentation.
  server.setNotFoundHandler((request, reply) => sendFault(new Fault('not_found'), request, reply))
  return server
}

/** A proxy may send the whole URL where the path belongs, and HTTP asks servers to take it. */
const pathOf = (url: string) => (url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?]*/i, '') || '/')

/** However its letters are written. */
const isApi = (url: string) =>
  url.replace(/%[2-7][0-9a-f]/gi, (letter) => decodeURIComponent(letter)).startsWith('/api/')

/** HTTP/1.1 asks for exactly one: with two, a proxy in front might have gone by the other. */
function requireOneHost({ raw, headers: { host } }: FastifyRequest): void {
  if (host === undefined && raw.httpVersionMinor > 0) throw invalid('/headers/host', 'is missing')
  if (host?.includes(',')) throw invalid('/headers/host', 'must be given once')
}

/** A caller's own id is kept if it is harmless in a log; otherwise one is made. */
function requestIds() {
  const boot = randomBytes(6).toString('base64url')
  let count = 0
  return (request: { headers: { [name: string]: string | string[] | undefined } }) => {
    const given = request.headers['x-request-id']
    if (typeof given === 'string' && REQUEST_ID.test(given)) return given
    count += 1
    return `${boot}-${count.toString(36)}`
  }
}
