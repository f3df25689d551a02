// MCP over streamable HTTP, without sessions: whatever node a request reaches can answer it.
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import { createClient } from '../client/index.ts'
import type { Variant } from '../contract/variants.ts'
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
  // Not tried again: the agent would sooner know than wait, and its connection is not kept open for long.
  const client = createClient({ baseUrl: 'http://localhost', apiKey, fetch, retries: 0 })
  const server = createMcpServer({ client, version, variant: async () => variant })
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
