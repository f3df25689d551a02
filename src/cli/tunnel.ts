// `adit tunnel <target>`: exposes a local server through an edge until it is stopped.
import { AditError, createClient } from '../client/index.ts'
import { edgeSettings } from '../config/edge.ts'
import { clientEnvironment } from '../config/environment.ts'
import type { ProxiedRequest } from '../tunnels/client/local-server.ts'
import { runTunnel, TunnelRejected } from '../tunnels/client/run-tunnel.ts'
import type { Opened } from '../tunnels/protocol.ts'
import {
  type Access,
  type ApiInput,
  findAccess,
  findKey,
  keyRejected,
  parseUrl,
  toCommandError,
} from './api.ts'
import { CommandError, UsageError } from './errors.ts'
import type { Io } from './io.ts'
import { awaitShutdown } from './shutdown.ts'
import { dim, green, red, type Text, yellow } from './style.ts'

const LOCAL_EDGE = `http://127.0.0.1:${edgeSettings.ADIT_EDGE_PORT.fallback}`

export interface TunnelInput extends ApiInput {
  target: string
  name: string | undefined
  edge: string | undefined
}

export async function tunnel(input: TunnelInput, io: Io): Promise<void> {
  const { host, port, url: target } = parseTarget(input.target)
  const { edge, apiKey, keySource, isGuessed } = await findEdge(input)
  const stop = new AbortController()
  awaitShutdown(0).requested.then(() => stop.abort())
  let shown: string | undefined
  let lost: string | undefined
  try {
    await runTunnel({
      edge,
      key: apiKey,
      name: input.name,
      host,
      port,
      signal: stop.signal,
      onOpen({ url, host, name }: Opened) {
        if (shown !== undefined) io.info('Reconnected.')
        // Scripts read the URL from the first line of output; with --json, each reconnect is an event too.
        if (io.json || shown !== url) io.data({ event: 'open', url, host, name, target }, url)
        if (shown !== url) io.info(`Forwarding to ${target}. Press Ctrl-C to stop.\n`)
        shown = url
        lost = undefined
      },
      onLost(reason) {
        // The same reason is reported once.
        if (lost === reason || stop.signal.aborted) return
        const hint = shown === undefined && isGuessed ? ' Use --edge or ADIT_EDGE_URL for another edge.' : ''
        io.info([yellow('!'), ` ${reason}${hint} Retrying …`])
        if (io.json) io.data({ event: 'lost', message: reason }, '')
        lost = reason
      },
      onRequest(request) {
        if (io.json) io.data({ event: 'request', ...request, ms: Math.round(request.ms) }, '')
        else io.info(requestLine(request))
      },
    })
  } catch (error) {
    throw error instanceof TunnelRejected ? toTunnelError(error, keySource) : error
  }
  if (shown !== undefined) io.info('Tunnel closed.')
}

/** A port of this machine, `host:port`, or `http://host:port`. */
function parseTarget(text: string): { host: string; port: number; url: string } {
  if (/^https:/i.test(text))
    throw new UsageError('The tunnel forwards to http:// servers only. Use the HTTP port of your server.')
  const rest = text.replace(/^http:\/\//i, '').replace(/\/$/, '')
  const [, host = 'localhost', portText = rest] =
    /^(\[[\da-f:.]+\]|[^:/?#@[\]\s]+):([^:]*)$/i.exec(rest) ?? []
  const port = /^\d{1,5}$/.test(portText) ? Number(portText) : 0
  if (port < 1 || port > 65_535)
    throw new UsageError(
      `Invalid port "${portText}" (expected 1–65535). ` +
        'The target is a port or host:port, e.g. 3000 or 127.0.0.1:3000.',
    )
  return { host: host.replace(/^\[(.*)\]$/, '$1'), port, url: `http://${host}:${port}` }
}

function requestLine({ method, path, status, ms }: ProxiedRequest): Text {
  const color = status >= 500 ? red : status >= 400 ? yellow : green
  const time = new Date().toISOString().slice(11, 19)
  const duration = `${String(Math.round(ms)).padStart(5)} ms`
  return [dim(time), '  ', color(String(status)), `  ${duration}  ${method.padEnd(6)} ${path}`]
}

function toTunnelError({ code, message }: TunnelRejected, keySource: Access['keySource']): Error {
  if (code === 'unauthorized') return keyRejected(message, keySource)
  return code === 'invalid_request' ? new UsageError(message) : new CommandError(code, message)
}

interface EdgeAccess extends Pick<Access, 'apiKey' | 'keySource'> {
  edge: string
  isGuessed: boolean
}

/** The edge of --edge or ADIT_EDGE_URL, or the tunnel domain of the workspace, which resolves to an edge. */
async function findEdge(input: TunnelInput): Promise<EdgeAccess> {
  const named = input.edge ?? clientEnvironment().edgeUrl
  if (named !== undefined) {
    const { apiKey, keySource } = findKey(input)
    return { edge: parseUrl(named, 'edge'), apiKey, keySource, isGuessed: false }
  }
  const access = findAccess(input)
  try {
    const workspace = await createClient(access).workspace.read()
    const { tunnelBase, exampleUrl = '' } = workspace as { tunnelBase?: string; exampleUrl?: string }
    const base = tunnelBase ?? exampleUrl.replace(/^(https?:\/\/)?[^.]+\./, '')
    const isLocal = /(^|\.)localhost$/.test(base)
    const { protocol } = new URL(access.baseUrl)
    return { ...access, edge: isLocal ? LOCAL_EDGE : `${protocol}//${base}`, isGuessed: true }
  } catch (error) {
    throw error instanceof AditError ? toCommandError(error, access) : error
  }
}
