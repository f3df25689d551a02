// MCP over standard input and output, for agents that start the program themselves.
import type { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'

/** Until the input ends. What was asked before is still answered: the server is not closed, there is just nothing left to do. */
export async function serveStdio(server: Server): Promise<void> {
  const ended = new Promise<void>((resolve) => {
    for (const event of ['end', 'close']) process.stdin.once(event, resolve)
    // The transport gives up on a line that does not end.
    server.onclose = resolve
  })
  await server.connect(new StdioServerTransport())
  await ended
}
