// `adit tunnel <target>` and `adit tunnel tcp <target>`: expose a local server through an edge until they are
// stopped.
import { AditError, createClient } from '../client/index.ts'
import { edgeSettings } from '../config/edge.ts'
import { clientEnvironment } from '../config/environment.ts'
import { version } from '../config.ts'
import { TunnelRejected } from '../tunnels/client/connect.ts'
import { DRAIN_MS, runTunnel } from '../tunnels/client/run-tunnel.ts'
import type { Opened, ProxiedConnection, ProxiedRequest, TunnelType } from '../tunnels/protocol.ts'
import {
  type Access,
  type ApiInput,
  findAccess,
  findKey,
  keyRejected,
  parseUrl,
  toCommandError,
} from './api.ts'
import { formatBytes } from './bytes.ts'
import { withCertificateAdvice } from './certificate-advice.ts'
import { CommandError, UsageError } from './errors.ts'
import type { Io } from './io.ts'
import { awaitShutdown } from './shutdown.ts'
import { dim, green, joinLines, red, type Text, yellow } from './style.ts'
import { accessNote, readAccess } from './tunnel-access.ts'

const LOCAL_EDGE = `http://127.0.0.1:${edgeSettings.ADIT_EDGE_PORT.fallback}`
/** Of messages for callers that do not retry by themselves. */
const RETRY_ADVICE = / Retry (shortly|later)\.$/

export interface TunnelInput extends ApiInput {
  target: string
  name: string | undefined
  edge: string | undefined
  pool: boolean
  'basic-auth': string | undefined
  'allow-ip': string[]
}

export async function tunnel(type: TunnelType, input: TunnelInput, io: Io): Promise<void> {
  const { host, port, url: target } = parseTarget(type, input.target)
  const access = await readAccess(type, input, io)
  const { edge, apiKey, keySource, isGuessed } = await findEdge(input)
  const { signal, abortSignal } = shutdownSignals()
  let shown: string | undefined
  let lost: string | undefined
  const { info, infoSoon } = batchLines(io)
  try {
    await runTunnel({
      edge,
      key: apiKey,
      type,
      name: input.name,
      pool: input.pool,
      access,
      client: `adit ${version}`,
      host,
      port,
      signal,
      abortSignal,
      onOpen({ url, host, name, access }: Opened) {
        if (shown !== undefined) info('Reconnected.')
        // Scripts read the URL from the first line of output; with --json, each reconnect is an event too.
        if (io.json || shown !== url) io.data({ event: 'open', type, url, host, name, target, access }, url)
        if (shown !== url) info(`Forwarding to ${target}.${accessNote(access)} Press Ctrl-C to stop.\n`)
        shown = url
        lost = undefined
      },
      onLost(reason) {
        // The same reason is reported once.
        if (lost === reason || signal.aborted) return
        const hint = shown === undefined && isGuessed ? ' Use --edge or ADIT_EDGE_URL for another edge.' : ''
        const message = withCertificateAdvice(reason)
        info([yellow('!'), ` ${message.replace(RETRY_ADVICE, '')}${hint} Retrying …`])
        if (io.json) io.data({ event: 'lost', message }, '')
        lost = reason
      },
      onRequest(request) {
        if (io.json) io.data({ event: 'request', ...request, ms: Math.round(request.ms) }, '')
        else infoSoon(requestLine(request))
      },
      onConnection(connection) {
        if (io.json) io.data({ event: 'connection', ...connection, ms: Math.round(connection.ms) }, '')
        else infoSoon(connectionLine(connection))
      },
      onNotice(message) {
        info([yellow('!'), ` ${message}`])
        if (io.json) io.data({ event: 'notice', message }, '')
      },
      onUnreachable: (message) => io.warn(message),
      onDrain: (inProgress) => info(drainLine(type, inProgress)),
    })
  } catch (error) {
    throw error instanceof TunnelRejected ? toTunnelError(error, keySource) : error
  }
  if (shown !== undefined) info('Tunnel closed.')
}

/**
 * Lines of requests are printed together with others of the same turn: a busy tunnel has thousands a second.
 */
function batchLines(io: Io) {
  let lines: Text[] = []
  const flush = () => {
    if (lines.length > 0) io.info(joinLines(lines))
    lines = []
  }
  return {
    info(line: Text): void {
      flush()
      io.info(line)
    },
    infoSoon(line: Text): void {
      if (lines.length === 0) setImmediate(flush)
      lines.push(line)
    },
  }
}

/** The first signal completes what is in progress, the second stops at once. */
function shutdownSignals() {
  const stop = new AbortController()
  const abort = new AbortController()
  const { requested, due } = awaitShutdown(DRAIN_MS / 1000)
  requested.then(() => stop.abort())
  due.then(() => abort.abort())
  return { signal: stop.signal, abortSignal: abort.signal }
}

/** A port of this machine, `host:port`, or `http://host:port` (`tcp://` for TCP). */
function parseTarget(type: TunnelType, text: string): { host: string; port: number; url: string } {
  if (type === 'http' && /^https:/i.test(text))
    throw new UsageError('The tunnel forwards to http:// servers only. Use the HTTP port of your server.')
  const scheme = `${type}://`
  const rest = (text.toLowerCase().startsWith(scheme) ? text.slice(scheme.length) : text).replace(/\/$/, '')
  const [, host = 'localhost', portText = rest] =
    /^(\[[\da-f:.]+\]|[^:/?#@[\]\s]+):([^:]*)$/i.exec(rest) ?? []
  const port = /^\d{1,5}$/.test(portText) ? Number(portText) : 0
  if (port < 1 || port > 65_535)
    throw new UsageError(
      `Invalid port "${portText}" (expected 1–65535). ` +
        'The target is a port or host:port, e.g. 3000 or 127.0.0.1:3000.',
    )
  return { host: host.replace(/^\[(.*)\]$/, '$1'), port, url: `${scheme}${host}:${port}` }
}

const timeOfDay = () => dim(new Date().toISOString().slice(11, 19))
const duration = (ms: number) => `${String(Math.round(ms)).padStart(5)} ms`

function requestLine({ method, path, status, ms }: ProxiedRequest): Text {
  const color = status >= 500 ? red : status >= 400 ? yellow : green
  return [timeOfDay(), '  ', color(String(status)), `  ${duration(ms)}  ${method.padEnd(6)} ${path}`]
}

const connectionLine = ({ bytesIn, bytesOut, ms }: ProxiedConnection): Text => [
  timeOfDay(),
  `  ${duration(ms)}  ${formatBytes(bytesIn)} in, ${formatBytes(bytesOut)} out`,
]

function drainLine(type: TunnelType, inProgress: number): string {
  const what = type === 'tcp' ? 'connection' : 'request'
  return `Finishing ${inProgress} ${what}${inProgress === 1 ? '' : 's'}. Press Ctrl-C again to stop now.`
}

function toTunnelError({ code, message }: TunnelRejected, keySource: Access['keySource']): Error {
  if (code === 'unauthorized') return keyRejected(message, keySource)
  if (code === 'invalid_request') return new UsageError(message)
  return new CommandError(code, message)
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
