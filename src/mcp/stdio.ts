// MCP over standard input and output, for agents that start the program.
import { PassThrough } from 'node:stream'
import type { Server } from '@modelcontextprotocol/server'
import { StdioServerTransport, serveStdio as serve } from '@modelcontextprotocol/server/stdio'

/** Runs until the input ends. Requests that are pending then still get a response. */
export async function serveStdio(createServer: () => Server): Promise<void> {
  const { stdin } = process
  // The transport aborts pending requests when its input ends, so the end is not passed on.
  const input = new PassThrough()
  stdin.pipe(input, { end: false })
  const transport = new StdioServerTransport(input)
  serve(createServer, { transport, maxSubscriptions: 0 })
  await new Promise<void>((resolve) => {
    for (const event of ['end', 'close']) stdin.once(event, resolve)
    const { onclose } = transport
    // It closes by itself on a line that is too long.
    transport.onclose = () => {
      onclose?.()
      stdin.unpipe(input).pause()
      resolve()
    }
  })
}
