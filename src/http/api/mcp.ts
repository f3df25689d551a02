// The agent interface, /mcp. It stands beside the API and in front of it: the same key opens it, and what its tools do goes
// through the API of this very server, so that limits, validation and the log are those of every other request.
import { setImmediate } from 'node:timers/promises'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Variant } from '../../contract/variants.ts'
import type { Directory } from '../../directory/directory.ts'
import { bearerToken, createAuthenticator, keyMessages } from '../auth/authenticator.ts'
import type { RateLimit } from '../auth/rate-limit.ts'
import { McpSlots } from './mcp-slots.ts'

const PATH = '/mcp'
/** A call takes milliseconds. */
const RETRY_AFTER_S = 1

interface McpCaller {
  actor: { kind: 'key'; id: string }
  workspaceId: string
}

export interface McpOptions {
  directory: Directory
  rateLimit: RateLimit | undefined
  variant: Variant
  version: string
}

export function registerMcp(
  server: FastifyInstance,
  { directory, rateLimit, variant, version }: McpOptions,
): void {
  const admitKey = createAuthenticator(directory.verifyKey, keyMessages)
  const slots = new McpSlots()
  const nextTurn = createTurns()

  server.register(async (scope) => {
    scope.addHook('onRequest', async (request, reply) => {
      const { keyId, workspaceId } = await admitKey(request, bearerToken(request))
      request.caller = { actor: { kind: 'key', id: keyId }, workspaceId }
      // Asking counts, and so does what a tool then asks of the API.
      rateLimit?.(keyId, reply)
    })

    // Bodies as they came: the protocol has words of its own for those that cannot be read.
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, bytes, done) => done(null, bytes))

    scope.post(PATH, async (request, reply) => {
      const { actor, workspaceId } = request.caller as McpCaller
      const slot = slots.take({ keyId: actor.id, workspaceId })
      if ('refusal' in slot)
        return reply
          .code(429)
          .header('retry-after', RETRY_AFTER_S)
          .send(errorMessage(`rate_limited: ${slot.refusal}`))
      const closed = new Promise((resolve) => reply.raw.once('close', resolve))
      const answering = answer(request, reply)
      // Both: the calls go on if the client leaves, and the response is in memory until the client has read it.
      void Promise.allSettled([answering, closed]).then(slot.release)
      return answering
    })

    // Without sessions there is no stream to open and nothing to end.
    scope.route({
      method: ['GET', 'DELETE'],
      url: PATH,
      handler: (_request, reply) =>
        reply.code(405).header('allow', 'POST').send(errorMessage('Method not allowed.')),
    })
  })

  async function answer(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    // Loaded when an agent first comes: most servers never see one.
    const { answerMcp } = await import('../../mcp/http.ts')
    const apiKey = bearerToken(request) as string
    const fetch = fetchWithin(server, request, nextTurn)
    const response = await answerMcp(messageOf(request), { apiKey, fetch, variant, version })
    reply.code(response.status).header('cache-control', 'no-store')
    const type = response.headers.get('content-type')
    if (type) reply.header('content-type', type)
    const body = Buffer.from(await response.arrayBuffer())
    return reply.send(body.length > 0 ? body : undefined)
  }
}

/** A JSON-RPC error that belongs to no message. */
const errorMessage = (message: string) => ({ jsonrpc: '2.0', error: { code: -32000, message }, id: null })

/** What the protocol goes by, and nothing of what is ours to judge. */
function messageOf({ headers, body }: FastifyRequest): Request {
  const told = ['accept', 'content-type', 'mcp-protocol-version'].flatMap((name) => {
    const value = headers[name]
    return typeof value === 'string' ? [[name, value] as [string, string]] : []
  })
  return new Request(`http://localhost${PATH}`, {
    method: 'POST',
    headers: told,
    body: (body as Uint8Array<ArrayBuffer> | undefined) ?? '',
  })
}

/** Requests to this server that take no network; the log knows them by the id and the address of the one they serve. */
function fetchWithin(
  server: FastifyInstance,
  served: FastifyRequest,
  nextTurn: () => Promise<void>,
): typeof fetch {
  return async (address, { method, headers, body, signal } = {}) => {
    const { pathname, search } = new URL(String(address))
    await nextTurn()
    const answer = await server.inject({
      method: method as 'GET',
      url: pathname + search,
      headers: { ...(headers as Record<string, string>), 'x-request-id': served.id },
      remoteAddress: served.ip,
      ...(body && { payload: body as string }),
      ...(signal && { signal }),
    })
    // What is done with the response takes as long as making it.
    await nextTurn()
    const named = Object.entries(answer.headers).map(([name, value]): [string, string] => [
      name,
      String(value),
    ])
    return new Response(answer.rawPayload as Uint8Array<ArrayBuffer>, {
      status: answer.statusCode,
      headers: named,
    })
  }
}

/** One turn in each iteration of the event loop, whoever asks for it: other events are handled in between. */
function createTurns(): () => Promise<void> {
  let last: Promise<void> = Promise.resolve()
  return () => {
    last = last.then(() => setImmediate())
    return last
  }
}
