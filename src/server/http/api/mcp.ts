// The MCP endpoint, /mcp. It is authenticated by API key, and its tools call the public API of the same
// server, so that limits, validation and the access log apply as to any other request.
import { finished } from 'node:stream/promises'
import { setImmediate } from 'node:timers/promises'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Variant } from '../../../contract/variants.ts'
import { RESOURCE_PATH as PATH } from '../../domain/agents/requests.ts'
import type { CredentialVerifier } from '../../verification/verify.ts'
import { bearerToken, createAuthenticator, keyMessages } from '../auth/authenticator.ts'
import { asMcpCall } from '../auth/mcp-calls.ts'
import type { RateLimit } from '../limits/rate-limit.ts'
import { checkOrigin, type McpOriginOptions, PREFLIGHT_HEADERS } from './mcp-origin.ts'
import { McpSlots } from './mcp-slots.ts'
import { challengeFor, registerOAuthMetadata } from './oauth-metadata.ts'

const PASSED_HEADER = /^(content-type|mcp-.*)$/
/** Calls take milliseconds. */
const RETRY_AFTER_S = 1

interface McpCaller {
  actor: { kind: 'key'; id: string }
  workspaceId: string
  managesKeys: boolean
}

interface McpOptions extends McpOriginOptions {
  verifier: CredentialVerifier
  rateLimit: RateLimit | undefined
  variant: Variant
  version: string
  /** The public URL of the server. */
  publicUrl: () => string
}

export function registerMcp(server: FastifyInstance, options: McpOptions): void {
  const authenticateKey = createAuthenticator(options.verifier.verifyMcpKey, keyMessages)
  const handle = createHandler(server, options)
  const slots = new McpSlots()
  const config = { surface: 'mcp', challenge: () => challengeFor(options.publicUrl(), PATH) }
  registerOAuthMetadata(server, { publicUrl: options.publicUrl, path: PATH })

  server.options(PATH, { config }, (request, reply) => {
    checkOrigin(request, reply, options)
    return reply.code(204).headers(PREFLIGHT_HEADERS).send()
  })
  server.register(async (scope) => {
    scope.addHook('onRequest', async (request, reply) => {
      checkOrigin(request, reply, options)
      const { keyId, workspaceId, managesKeys } = await authenticateKey(request, bearerToken(request))
      request.caller = { actor: { kind: 'key', id: keyId }, workspaceId, managesKeys } satisfies McpCaller
      // Counts the MCP request; each API request of its tools is counted as well.
      await options.rateLimit?.(keyId, reply)
    })

    // Bodies stay unparsed: the protocol has its own errors for malformed ones.
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, bytes, done) => done(null, bytes))

    scope.post(PATH, { config }, async (request, reply) => {
      const { actor, workspaceId } = request.caller as McpCaller
      const slot = slots.acquire({ keyId: actor.id, workspaceId })
      if ('error' in slot) return sendRateLimited(reply, slot.error)
      const displaced = new Promise<undefined>((resolve) => {
        slot.displaced.addEventListener('abort', () => resolve(undefined))
      })
      const handled = handle(request)
      // Waits for both: calls continue after the client disconnects, and the response stays in memory until
      // it is sent.
      void Promise.allSettled([handled, finished(reply.raw)]).then(slot.release)
      const response = await Promise.race([handled, displaced])
      if (!response) return sendRateLimited(reply, DISPLACED)
      // A client that reads its response slowly loses the connection.
      void displaced.then(() => reply.raw.destroy())
      return sendResponse(reply, response)
    })

    // Without sessions there is no stream to open and no session to delete.
    scope.route({ method: ['GET', 'DELETE'], url: PATH, config, handler: sendMethodNotAllowed })
  })
}

const DISPLACED =
  'This node has too many requests in progress, most of them of this workspace. A call of this request may ' +
  'have been made: check before you repeat it.'

const sendRateLimited = (reply: FastifyReply, message: string) =>
  reply
    .code(429)
    .header('retry-after', RETRY_AFTER_S)
    .send(errorMessage(`rate_limited: ${message}`))

const sendMethodNotAllowed = (_request: FastifyRequest, reply: FastifyReply) =>
  reply.code(405).header('allow', 'POST').send(errorMessage('Method not allowed.'))

function createHandler(server: FastifyInstance, { variant, version }: McpOptions) {
  const yieldTurn = createTurnQueue()
  return async (request: FastifyRequest): Promise<McpResponse> => {
    // Loaded on the first MCP request: many servers never get one.
    const { handleMcp } = await import('../../../mcp/http.ts')
    const apiKey = bearerToken(request) as string
    const fetch = createInternalFetch(server, request, yieldTurn)
    const { managesKeys } = request.caller as McpCaller
    const options = { apiKey, fetch, variant, managesKeys, version }
    const response = await handleMcp(toMcpRequest(request), options)
    const type = response.headers.get('content-type')
    return { status: response.status, type, body: Buffer.from(await response.arrayBuffer()) }
  }
}

interface McpResponse {
  status: number
  type: string | null
  body: Buffer
}

function sendResponse(reply: FastifyReply, { status, type, body }: McpResponse): FastifyReply {
  reply.code(status).header('cache-control', 'no-store')
  if (type) reply.header('content-type', type)
  return reply.send(body.length > 0 ? body : undefined)
}

/** A JSON-RPC error that belongs to no message. */
const errorMessage = (message: string) => ({ jsonrpc: '2.0', error: { code: -32000, message }, id: null })

/**
 * Passes on only the headers that the protocol compares with the message: version, method and tool. Event
 * streams are never sent, but the SDK rejects clients that do not accept them.
 */
function toMcpRequest({ headers, body }: FastifyRequest): Request {
  const passed = Object.entries(headers).filter(
    (entry): entry is [string, string] => PASSED_HEADER.test(entry[0]) && typeof entry[1] === 'string',
  )
  const accept = acceptsJson(headers.accept) ? 'application/json, text/event-stream' : 'text/event-stream'
  return new Request(`http://localhost${PATH}`, {
    method: 'POST',
    headers: [...passed, ['accept', accept]],
    body: (body as Uint8Array<ArrayBuffer> | undefined) ?? '',
  })
}

const acceptsJson = (accept = '*/*') =>
  accept.split(',').some((part) => {
    const [type = '', ...parameters] = part.toLowerCase().split(';')
    const isExcluded = parameters.some((parameter) => /^\s*q\s*=\s*0(\.0*)?\s*$/.test(parameter))
    return !isExcluded && ['*/*', 'application/*', 'application/json'].includes(type.trim())
  })

/**
 * Calls the API of this server without the network. The access log has the id, trace and address of the MCP
 * request.
 */
function createInternalFetch(
  server: FastifyInstance,
  outer: FastifyRequest,
  yieldTurn: () => Promise<void>,
): typeof fetch {
  const { id, clientAddress } = outer
  const { traceparent } = outer.headers
  return async (url, { method, headers, body, signal } = {}) => {
    const { pathname, search } = new URL(String(url))
    await yieldTurn()
    // Awaited inside: the request begins only then.
    const response = await asMcpCall(
      async () =>
        await server.inject({
          method: method as 'GET',
          url: pathname + search,
          headers: {
            ...(headers as Record<string, string>),
            'x-request-id': id,
            ...(traceparent && { traceparent }),
          },
          ...(clientAddress && { remoteAddress: clientAddress }),
          ...(body && { payload: body as string }),
          ...(signal && { signal }),
        }),
    )
    // Yields again: parsing a response can take as long as producing it.
    await yieldTurn()
    return new Response(response.rawPayload as Uint8Array<ArrayBuffer>, {
      status: response.statusCode,
      headers: response.headers as Record<string, string>,
    })
  }
}

/** Resolves one caller in each iteration of the event loop, so that other events are handled in between. */
function createTurnQueue(): () => Promise<void> {
  let last: Promise<void> = Promise.resolve()
  return () => {
    last = last.then(() => setImmediate())
    return last
  }
}
