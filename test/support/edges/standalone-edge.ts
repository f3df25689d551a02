// An edge without a control plane, and a tunnel client whose bytes the test controls.
import { once } from 'node:events'
import { join } from 'node:path'
import { connect } from '../../../src/tunnel-client/connect.ts'
import type { Opened, TunnelRequest } from '../../../src/tunnel-protocol/protocol.ts'
import { Session, type YamuxStream } from '../../../src/yamux/index.ts'
import type { Test } from '../cleanup.ts'
import { createFolder } from '../databases/create.ts'
import { run } from '../processes/process.ts'
import { until } from '../until.ts'
import { type Edge, openTunnel, startLocal, startTunnelEdge } from './tunnels.ts'

/** With an API key for each workspace, and a local server. */
export async function startStandaloneEdge(
  t: Test,
  slugs: string[],
  env: Record<string, string> = {},
  descriptors?: number,
) {
  const file = join(createFolder(t), 'tokens.json')
  const keys: string[] = []
  for (const slug of slugs) {
    const { stdout } = await run(t, ['tokens-file', 'add', slug, '--file', file], {})
    keys.push(stdout.trim())
  }
  const edge = await startTunnelEdge(t, {
    args: ['--tokens-file', file],
    // Nothing listens at ADIT_URL: a tokens file needs no control plane.
    env: { ADIT_URL: 'http://127.0.0.1:9', ADIT_TUNNEL_DOMAIN: 'tunnels.test', ...env },
    descriptors,
  })
  return { edge, file, keys, local: await startLocal(t) }
}

let tunnels = 0

/** A tunnel under a name of its own, to a local server of its own. */
export async function openOwnTunnel(t: Test, edge: Edge, key: string) {
  const local = await startLocal(t)
  tunnels += 1
  return { ...(await openTunnel(t, { edge, key, port: local.port, name: `app-${tunnels}` })), local }
}

/** The bytes that ask for a tunnel. */
export const upgradeRequest = (key: string, request: TunnelRequest = {}) =>
  'GET /.adit/connect HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
  'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n' +
  `Sec-WebSocket-Protocol: adit-tunnel.v1\r\nAuthorization: Bearer ${key}\r\n` +
  `Adit-Tunnel: ${JSON.stringify(request)}\r\n\r\n`

/** A tunnel client that responds with the bytes of the test. */
export async function openRawTunnel(edge: Pick<Edge, 'url'>, key: string, request: TunnelRequest = {}) {
  const webSocket = await connect({
    edge: edge.url,
    key,
    findProxy: undefined,
    request,
    isReconnect: false,
    signal: new AbortController().signal,
  })
  const streams: YamuxStream[] = []
  const requests: string[] = []
  let respondTo: ((stream: YamuxStream) => void) | undefined
  const session = new Session(webSocket, {
    role: 'client',
    onStream(stream) {
      stream.on('error', () => {})
      streams.push(stream)
      respondTo?.(stream)
    },
    onClose: () => {},
  })
  await until('the tunnel is open', () => streams.length > 0)
  const [line] = await once(streams[0] as YamuxStream, 'data')
  const { host, url } = JSON.parse(String(line).split('\n', 1)[0] as string) as Opened
  return {
    host,
    url,
    events: streams[0] as YamuxStream,
    /** What arrived first on each stream that `respond` has handled. */
    requests: () => requests,
    /** The streams to the local server. */
    streams: () => streams.slice(1),
    /** Called with each new stream to the local server. */
    onStream(act: (stream: YamuxStream) => void) {
      respondTo = act
    },
    /** Responds to the head of each request. */
    respond(bytes: string) {
      respondTo = (stream) =>
        stream.on('data', (chunk) => {
          // Not the body of a request.
          if (!/^[A-Z]+ \//.test(String(chunk))) return
          requests.push(String(chunk))
          stream.write(bytes, 'latin1')
        })
    },
    /** Closes the connection without a word. */
    close: () => webSocket.destroy(),
    session,
  }
}
