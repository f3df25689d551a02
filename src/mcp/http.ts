// MCP over streamable HTTP, without sessions: any node can handle any request.
import {
  createMcpHandler,
  isLegacyRequest,
  ProtocolErrorCode,
  type Server,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'
import { createClient } from '../client/index.ts'
import type { Variant } from '../contract/variants.ts'
import { batchError, createBatchRunner } from './batch.ts'
import { createMcpServer } from './server.ts'

interface HttpOptions {
  apiKey: string
  /** Calls the API; only the path of the URL is meaningful. */
  fetch: typeof fetch
  variant: Variant
  managesKeys: boolean
  version: string
}

export async function handleMcp(request: Request, options: HttpOptions): Promise<Response> {
  const { apiKey, fetch, variant, managesKeys, version } = options
  const message = batchError(parseJson(await request.clone().text()))
  if (message) {
    const error = { code: ProtocolErrorCode.InvalidRequest, message }
    return Response.json({ jsonrpc: '2.0', error, id: null }, { status: 400 })
  }
  // No retries: the agent can retry itself, and its connection times out soon.
  const client = createClient({ baseUrl: 'http://localhost', apiKey, fetch, retries: 0 })
  const createServer = () =>
    createMcpServer({
      client,
      version,
      variant: async () => variant,
      managesKeys,
      runCall: createBatchRunner(),
    })
  return (await isLegacyRequest(request))
    ? handleLegacy(request, createServer())
    : handle(request, createServer)
}

/** Revision 2026-07-28 and later. Nothing that a client could subscribe to ever changes. */
async function handle(request: Request, createServer: () => Server): Promise<Response> {
  const handler = createMcpHandler(createServer, { legacy: 'reject', maxSubscriptions: 0 })
  try {
    return await handler.fetch(request)
  } finally {
    await handler.close()
  }
}

/** Earlier revisions, which begin with a handshake. The SDK's own handler responds with event streams. */
async function handleLegacy(request: Request, server: Server): Promise<Response> {
  // Without sessions, a cancellation could only be for a request of its own batch, which would never
  // complete.
  server.removeNotificationHandler('notifications/cancelled')
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
  await server.connect(transport)
  try {
    return await transport.handleRequest(request)
  } finally {
    await server.close()
  }
}

/** Undefined for malformed JSON, which the transport rejects. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
