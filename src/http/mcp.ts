// The agent interface, /mcp. It stands beside the API and in front of it: the same key opens it, and what its tools do goes
// through the API of this very server, so that limits, validation and the log are those of every other request.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Variant } from '../contract/variants.ts'
import type { Directory } from '../directory/directory.ts'
import { bearerOf, createGate, keyWords } from './authenticate.ts'
import type { RateLimit } from './rate-limit.ts'

const PATH = '/mcp'

export interface McpOptions {
  directory: Directory
  rateLimit: RateLimit | undefined
  variant: Variant
  version: string
}

export function mountMcp(
  server: FastifyInstance,
  { directory, rateLimit, variant, version }: McpOptions,
): void {
  const admitKey = createGate(directory.verifyKey, keyWords)

  server.register(async (scope) => {
    scope.addHook('onRequest', async (request, reply) => {
      const { keyId } = await admitKey(request, bearerOf(request))
      request.caller = { actor: { kind: 'key', id: keyId } }
      // Asking counts, and so does what a tool then asks of the API.
      rateLimit?.(keyId, reply)
    })

    // Bodies as they came: the protocol has words of its own for those that cannot be read.
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, bytes, done) => done(null, bytes))

    scope.post(PATH, async (request, reply) => {
      // Loaded when an agent first comes: most servers never see one.
      const { answerMcp } = await import('../mcp/http.ts')
      const apiKey = bearerOf(request) as string
      const fetch = fetchWithin(server, request)
      const answer = await answerMcp(messageOf(request), { apiKey, fetch, variant, version })
      reply.code(answer.status).header('cache-control', 'no-store')
      const type = answer.headers.get('content-type')
      if (type) reply.header('content-type', type)
      return reply.send((await answer.text()) || undefined)
    })

    // Without sessions there is no stream to open and nothing to end.
    scope.route({
      method: ['GET', 'DELETE'],
      url: PATH,
      handler: (_request, reply) =>
        reply
          .code(405)
          .header('allow', 'POST')
          .send({ jsonrpc: '2.0', error: { code: -32000, message: 'Method not allowed.' }, id: null }),
    })
  })
}

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
function fetchWithin(server: FastifyInstance, served: FastifyRequest): typeof fetch {
  return async (address, { method, headers, body, signal } = {}) => {
    const { pathname, search } = new URL(String(address))
    const answer = await server.inject({
      method: method as 'GET',
      url: pathname + search,
      headers: { ...(headers as Record<string, string>), 'x-request-id': served.id },
      remoteAddress: served.ip,
      ...(body && { payload: body as string }),
      ...(signal && { signal }),
    })
    const named = Object.entries(answer.headers).map(([name, value]): [string, string] => [
      name,
      String(value),
    ])
    return new Response(answer.body, { status: answer.statusCode, headers: named })
  }
}
