// `adit mcp`: the agent interface on standard input and output. Standard output belongs to the protocol.
import { createClient } from '../client/index.ts'
import { version } from '../config.ts'
import { createMcpServer } from '../mcp/server.ts'
import { serveStdio } from '../mcp/stdio.ts'
import { createVariantFinder } from '../mcp/variant.ts'
import type { Io } from './io.ts'

export async function mcp({ baseUrl, apiKey }: { baseUrl: string; apiKey: string }, io: Io): Promise<void> {
  // Once more and no oftener: agents wait for a minute at the most.
  const client = createClient({ baseUrl, apiKey, retries: 1 })
  if (process.stdin.isTTY) io.info('This speaks MCP and is meant to be started by an agent. Ctrl-D ends it.')
  await serveStdio(createMcpServer({ client, version, variant: createVariantFinder(client) }))
}
