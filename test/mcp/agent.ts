// An agent: the official MCP client, over either transport.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import {
  Client,
  type ClientOptions,
  StreamableHTTPClientTransport,
  type Transport,
} from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { atEnd, type Test } from '../support/cleanup.ts'
import { root } from '../support/processes/process.ts'

export const transports = ['stdio', 'http'] as const
type TransportName = (typeof transports)[number]

export interface Access {
  url: string
  apiKey: string
  /** Headers of requests over HTTP. */
  headers?: Record<string, string>
  /** Of `adit mcp`. */
  flags?: string[]
  env?: Record<string, string>
}

interface Outcome {
  failed: boolean
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: results have different shapes
  data: any
}

export interface Agent {
  client: Client
  call(name: string, args?: Record<string, unknown>): Promise<Outcome>
}

const launcher = join(root, 'bin/adit.js')

/** Nothing of the environment of the tests but what any process needs. */
const environment = (url: string, apiKey: string) => ({
  PATH: process.env.PATH ?? '',
  HOME: process.env.HOME ?? '',
  XDG_CONFIG_HOME: '/nonexistent',
  ADIT_URL: url,
  ADIT_API_KEY: apiKey,
})

/** A subclass: the client starts a second process for its discovery otherwise. */
class StdioTransport extends StdioClientTransport {}

const open: Record<TransportName, (access: Access) => Transport> = {
  stdio: ({ url, apiKey, flags = [], env = {} }) =>
    new StdioTransport({
      command: process.execPath,
      args: [launcher, 'mcp', ...flags],
      env: { ...environment(url, apiKey), ...env },
      stderr: 'inherit',
    }),
  http: ({ url, apiKey, headers }) =>
    new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
      requestInit: { headers: { authorization: `Bearer ${apiKey}`, ...headers } },
    }) as Transport,
}

export async function connectAgent(
  t: Test,
  transport: TransportName,
  access: Access,
  options: ClientOptions = { versionNegotiation: { mode: 'auto' } },
): Promise<Agent> {
  const client = new Client({ name: 'test', version: '1' }, options)
  atEnd(t, () => client.close())
  await client.connect(open[transport](access))
  return {
    client,
    async call(name, args) {
      const result = await client.callTool({ name, ...(args && { arguments: args }) })
      const [first] = result.content as { type: string; text: string }[]
      return { failed: result.isError === true, text: first?.text ?? '', data: result.structuredContent }
    },
  }
}

export const listToolNames = async ({ client }: Agent) =>
  (await client.listTools()).tools.map(({ name }) => name)

/** `adit mcp` without a client. */
export function spawnMcp(t: Test, { url, apiKey, flags = [], env = {} }: Access) {
  const child = spawn(process.execPath, [launcher, 'mcp', ...flags], {
    env: { ...environment(url, apiKey), ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  atEnd(t, () => child.kill('SIGKILL'))
  return child
}

/** Sends messages to standard input and ends it; returns standard output. */
export async function exchangeLines(t: Test, access: Access, messages: object[]): Promise<string> {
  const child = spawnMcp(t, access)
  child.stdin.end(messages.map((message) => `${JSON.stringify(message)}\n`).join(''))
  return (await child.stdout.setEncoding('utf8').toArray()).join('')
}

/** Posts a message to /mcp without a client. */
export const postMessage = (
  { url, apiKey }: Access,
  message: unknown,
  headers: Record<string, string> = {},
): Promise<Response> =>
  fetch(`${url}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${apiKey}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      ...headers,
    },
    body: typeof message === 'string' ? message : JSON.stringify(message),
  })

/** Begins a connection without a client. */
export const hello = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
}

export const callMessage = (id: number, name: string, args: object = {}) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args },
})
