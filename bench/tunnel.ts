// A tunnel as shipped: `adit edge` with a tokens file, and `adit tunnel`, with their logs in files.
import { join } from 'node:path'
import { runAdit, type Served, startCommand } from './processes.ts'

interface ServedEdge extends Served {
  /** An API key for each workspace. */
  readonly keys: readonly string[]
  readonly logFile: string
}

export async function startEdge(
  folder: string,
  workspaces: readonly string[],
  settings: Record<string, string> = {},
): Promise<ServedEdge> {
  const file = join(folder, 'tokens.json')
  const keys: string[] = []
  for (const workspace of workspaces) {
    const { stdout } = await runAdit(['tokens-file', 'add', workspace, '--file', file], {})
    keys.push(stdout.trim())
  }
  const env = { ADIT_EDGE_PORT: '0', ADIT_TUNNEL_DOMAIN: 'localhost', ...settings }
  const logFile = join(folder, 'edge.log')
  const edge = await startCommand(['edge', '--tokens-file', file, '--json'], env, logFile)
  return { ...edge, keys, logFile }
}

interface ServedTunnel extends Served {
  /** The tunnel's host name; the URL is the edge's. */
  readonly host: string
  readonly clientPid: number
}

export async function startTunnel(folder: string, port: number): Promise<ServedTunnel> {
  const edge = await startEdge(folder, ['bench'])
  const client = await startCommand(
    ['tunnel', `127.0.0.1:${port}`, '--name', 'app', '--edge', edge.url],
    { ADIT_API_KEY: edge.keys[0] as string },
    join(folder, 'tunnel.log'),
  )
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
