// A tunnel as shipped: `adit edge` with a tokens file, and `adit tunnel`, with their logs in files.
import { join } from 'node:path'
import { runAdit, type Served, startCommand } from './processes.ts'

interface ServedEdge extends Served {
  /** An API key for each workspace. */
  readonly keys: readonly string[]
  readonly logFile: string
}

/** Creates a tokens file with an API key for each workspace. */
export async function createTokens(folder: string, workspaces: readonly string[]) {
  const file = join(folder, 'tokens.json')
  const keys: string[] = []
  for (const workspace of workspaces) {
    const { stdout } = await runAdit(['tokens-file', 'add', workspace, '--file', file], {})
    keys.push(stdout.trim())
  }
  return { file, keys }
}

export async function startEdge(
  folder: string,
  workspaces: readonly string[],
  settings: Record<string, string> = {},
): Promise<ServedEdge> {
  const { file, keys } = await createTokens(folder, workspaces)
  const env = { ADIT_EDGE_PORT: '0', ADIT_TUNNEL_DOMAIN: 'localhost', ...settings }
  const logFile = join(folder, 'edge.log')
  const edge = await startCommand(['edge', '--tokens-file', file, '--json'], env, logFile)
  return { ...edge, keys, logFile }
}

/** `adit tunnel` with the name `app`. */
export const startClient = (
  folder: string,
  port: number,
  edgeUrl: string,
  key: string,
  flags: readonly string[] = [],
) =>
  startCommand(
    ['tunnel', `127.0.0.1:${port}`, '--name', 'app', '--edge', edgeUrl, ...flags],
    { ADIT_API_KEY: key, XDG_RUNTIME_DIR: folder },
    join(folder, 'tunnel.log'),
  )

interface ServedTunnel extends Served {
  /** The tunnel's host name; the URL is the edge's. */
  readonly host: string
  readonly clientPid: number
}

interface TunnelOptions {
  /** Of the edge. */
  settings?: Record<string, string>
  /** Of the tunnel client. */
  flags?: readonly string[]
  /** Gets the port of the edge, and returns the one to which the client connects. */
  reachEdge?(port: number): Promise<number>
}

export async function startTunnel(
  folder: string,
  port: number,
  { settings, flags, reachEdge = async (port) => port }: TunnelOptions = {},
): Promise<ServedTunnel> {
  const edge = await startEdge(folder, ['bench'], settings)
  const reached = `http://127.0.0.1:${await reachEdge(Number(new URL(edge.url).port))}`
  const client = await startClient(folder, port, reached, edge.keys[0] as string, flags)
  return {
    url: edge.url,
    pid: edge.pid,
    host: new URL(client.url).host,
    clientPid: client.pid,
    async stop() {
      await client.stop()
      await edge.stop()
    },
  }
}
