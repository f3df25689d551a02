// `adit mcp`: MCP on standard input and output. Only the protocol may write to standard output.
import { createMcpServer } from '../mcp/server.ts'
import { serveStdio } from '../mcp/stdio.ts'
import { createVariantFinder } from '../mcp/variant.ts'
import { version } from '../server/config/server.ts'
import { createApiClient } from './api.ts'
import type { Io } from './io.ts'

export async function mcp({ baseUrl, apiKey }: { baseUrl: string; apiKey: string }, io: Io): Promise<void> {
  // One retry: agents time out after a minute.
  const client = createApiClient({ baseUrl, apiKey, retries: 1 })
  if (process.stdin.isTTY)
    io.info('This is an MCP server, to be started by an agent. Press Ctrl-D to stop it.')
  const variant = createVariantFinder(client)
  await serveStdio(() => createMcpServer({ client, version, variant }))
}
