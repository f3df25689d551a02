// `adit mcp`: MCP on standard input and output. Only the protocol may write to standard output.
import type { LocalTools } from '../mcp/local-tools.ts'
import { createMcpServer } from '../mcp/server.ts'
import { serveStdio } from '../mcp/stdio.ts'
import { createVariantFinder } from '../mcp/variant.ts'
import { version } from '../server/config/server.ts'
import { abortOnSignal } from './abort-on-signal.ts'
import { type ApiInput, createApiClient, findAccess } from './api.ts'
import { UsageError } from './errors.ts'
import type { Io } from './io.ts'

interface McpInput extends ApiInput {
  'allow-port': string[]
  'mask-header': string[]
  'show-secrets': boolean
}

/** Without --allow-port. */
const noLocalTools: LocalTools = {
  instructions:
    'This program can also open tunnels to local ports and show what arrives. The user has to allow that: ' +
    '`adit mcp --allow-port <port>`.',
  tools: [],
}

export async function mcp(input: McpInput, io: Io): Promise<void> {
  const { baseUrl, apiKey } = findAccess(input)
  // One retry: agents time out after a minute.
  const client = createApiClient({ baseUrl, apiKey, retries: 1 })
  const agentTools = await openLocalTools(input, io)
  if (process.stdin.isTTY)
    io.info('This is an MCP server, to be started by an agent. Press Ctrl-D to stop it.')
  const variant = createVariantFinder(client)
  const localTools = agentTools ?? noLocalTools
  const serve = () => serveStdio(() => createMcpServer({ client, version, variant, localTools }))
  await (agentTools ? closeAfter(serve, agentTools.close) : serve())
}

/** Also after a signal; a second one ends the process at once. */
async function closeAfter(serve: () => Promise<void>, close: () => Promise<void>): Promise<void> {
  const { signal, release } = abortOnSignal()
  signal.addEventListener('abort', () => {
    release()
    process.stdin.destroy()
  })
  try {
    await serve()
  } finally {
    await close()
    release()
  }
}

async function openLocalTools(input: McpInput, io: Io) {
  const { url, profile, 'allow-port': texts, 'mask-header': masked, 'show-secrets': showsSecrets } = input
  if (texts.length === 0) {
    if (showsSecrets || masked.length > 0)
      throw new UsageError('--show-secrets and --mask-header have no effect without --allow-port.')
    return undefined
  }
  // Loaded only when it is used.
  const [{ AllowedPorts }, { openAgentTools }, { readMaskHeaders }] = await Promise.all([
    import('./agent-tools/allowed-ports.ts'),
    import('./agent-tools/tools.ts'),
    import('./tunnels/inspect.ts'),
  ])
  return openAgentTools({
    ports: new AllowedPorts(texts),
    maskHeaders: readMaskHeaders([{ 'mask-header': masked }]),
    showsSecrets,
    access: { url, profile },
    io,
  })
}
