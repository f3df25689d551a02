// MCP over streamable HTTP, without sessions: whatever node a request reaches can answer it.
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import { ErrorCode } from '@modelcontextprotocol/sdk/types.js'
import { createClient } from '../client/index.ts'
import type { Variant } from '../contract/variants.ts'
import { batchError, createBatchRunner } from './batch.ts'
import { createMcpServer } from './server.ts'

export interface HttpOptions {
  apiKey: string
  /** How the API is reached; the address it is given is made up, but for the path. */
  fetch: typeof fetch
  variant: Variant
  version: string
}

export async function answerMcp(request: Request, options: HttpOptions): Promise<Response> {
  const { apiKey, fetch, variant, version } = options
  const error = batchError(parseJson(await request.clone().text()))
  if (error) return Response.json(errorMessage(ErrorCode.InvalidRequest, error), { status: 400 })
  // Not tried again: the agent would sooner know than wait, and its connection is not kept open for long.
  const client = createClient({ baseUrl: 'http://localhost', apiKey, fetch, retries: 0 })
  const server = createMcpServer({
    client,
    version,
    variant: async () => variant,
    runCall: createBatchRunner(),
  })
  // Without sessions it could only name a request of its own batch, which would then be waited for in vain.
  server.removeNotificationHandler('notifications/cancelled')
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
  await server.connect(transport)
  try {
    return await transport.handleRequest(request)
  } finally {
    await server.close()
  }
}

/** A response that belongs to no message. */
const errorMessage = (code: number, message: string) => ({
  jsonrpc: '2.0',
  error: { code, message },
  id: null,
})

/** Undefined for what the transport refuses as no JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
