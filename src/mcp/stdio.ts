// MCP over standard input and output, for agents that start the program.
import type { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'

/** Runs until the input ends. The server stays open, so that pending requests still get a response. */
export async function serveStdio(server: Server): Promise<void> {
  const ended = new Promise<void>((resolve) => {
    for (const event of ['end', 'close']) process.stdin.once(event, resolve)
    // The transport closes on a line that is too long.
    server.onclose = resolve
  })
  await server.connect(new StdioServerTransport())
  await ended
}
