// `adit tunnel` and `adit tunnel tcp`: expose a local server, or the files of a folder, through an edge until
// they are stopped.
import { oneLine } from '../../lib/net/untrusted-text.ts'
import { readProxies } from '../../server/config/environment.ts'
import { version } from '../../server/config/server.ts'
import { TunnelRejected } from '../../tunnel-client/connect.ts'
import { DRAIN_MS, runTunnel } from '../../tunnel-client/run.ts'
import type { Opened, ProxiedConnection, ProxiedRequest, TunnelType } from '../../tunnel-protocol/protocol.ts'
import { type ApiAccess, keyRejected } from '../api.ts'
import { formatBytes } from '../bytes.ts'
import { formatDuration } from '../duration.ts'
import { CommandError, UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { awaitShutdown, STOP_SIGNALS } from '../server/shutdown.ts'
import { dim, green, joinLines, red, type Text, yellow } from '../style.ts'
import { type AccessInput, accessNote, readAccess } from './access.ts'
import { withCertificateAdvice } from './certificate-advice.ts'
import { type EdgeInput, findEdge } from './edge-address.ts'
import { openTarget, type TargetInput } from './target.ts'

/** Edges add this to messages, for callers that do not retry automatically. */
const RETRY_ADVICE = / Retry (shortly|later)\.$/

interface TunnelInput extends EdgeInput, TargetInput, AccessInput {
  name: string | undefined
  pool: boolean
}

export async function tunnel(type: TunnelType, input: TunnelInput, io: Io): Promise<void> {
  const { info, infoSoon } = batchLines(io)
  let isOver = false
  const { target, note, localServer, request, problems } = await openTarget(type, input, {
    onProblem(code, message) {
      // The last line is why the tunnel was closed.
      if (isOver) return
      info([yellow('!'), ` ${message}`])
      if (io.json) io.data({ event: 'problem', code, message }, '')
    },
    onResolved(message) {
      info(message)
      if (io.json) io.data({ event: 'resolved', message }, '')
    },
  })
  const access = await readAccess(type, input, io)
  const { edge, apiKey, keySource, fromDomain } = await findEdge(input, io)
  const { signal, abortSignal } = shutdownSignals()
  let shown: string | undefined
  let lost: string | undefined
  try {
    await runTunnel({
      edge,
      key: apiKey,
      type,
      name: input.name,
      pool: input.pool,
      access,
      ...request,
      client: `adit ${version}`,
      localServer,
      findProxy: readProxies(),
      signal,
      abortSignal,
      onOpen({ url, host, name, access }: Opened) {
        if (shown !== undefined) info('Reconnected.')
        // Scripts read the URL from the first line of output; with --json, each reconnect is an event too.
        if (io.json || shown !== url) io.data({ event: 'open', type, url, host, name, target, access }, url)
        if (shown !== url) info(`${note}.${accessNote(access)} Press Ctrl-C to stop.\n`)
        if (shown === undefined) localServer.check?.()
        shown = url
        lost = undefined
      },
      onLost(reason) {
        // The same reason is reported once.
        if (lost === reason || signal.aborted) return
        const hint = shown === undefined && fromDomain ? ' Use --edge or ADIT_EDGE_URL for another edge.' : ''
        const message = withCertificateAdvice(reason)
        info([yellow('!'), ` ${message.replace(RETRY_ADVICE, '')}${hint} Retrying …`])
        if (io.json) io.data({ event: 'lost', message }, '')
        lost = reason
      },
      onRequest(request) {
        if (io.json) io.data({ event: 'request', ...request, ms: Math.round(request.ms) }, '')
        else infoSoon(requestLine(request))
        problems?.onRequest(request)
      },
      onConnection(connection) {
        if (io.json) io.data({ event: 'connection', ...connection, ms: Math.round(connection.ms) }, '')
        else infoSoon(connectionLine(connection))
      },
      onNotice(message) {
        info([yellow('!'), ` ${message}`])
        if (io.json) io.data({ event: 'notice', message }, '')
      },
      onDrain: (inProgress) => info(drainLine(type, inProgress)),
    })
  } catch (error) {
    throw error instanceof TunnelRejected ? toTunnelError(error, keySource) : error
  } finally {
    isOver = true
  }
  if (shown !== undefined) info('Tunnel closed.')
}

/**
 * Lines of requests are printed together with others of the same turn: a busy tunnel has thousands a second.
 */
export function batchLines(io: Io) {
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

/** The first signal completes what is in progress, the second stops at once. SIGHUP: the terminal is gone. */
export function shutdownSignals() {
  const stop = new AbortController()
  const abort = new AbortController()
  const { requested, due } = awaitShutdown(DRAIN_MS / 1000, [...STOP_SIGNALS, 'SIGHUP'])
  requested.then(() => stop.abort())
  due.then(() => abort.abort())
  return { signal: stop.signal, abortSignal: abort.signal }
}

const timeOfDay = () => dim(new Date().toISOString().slice(11, 19))
const duration = (ms: number) => formatDuration(ms).padStart(8)

const transfer = ({ bytesIn, bytesOut, ms }: ProxiedConnection) =>
  `  ${duration(ms)}  ${formatBytes(bytesIn)} in, ${formatBytes(bytesOut)} out`

export function requestLine({ method, path, status, ...transferred }: ProxiedRequest): Text {
  const color = status >= 500 ? red : status >= 400 ? yellow : green
  const line = `${transfer(transferred).padEnd(35)}  ${method.padEnd(6)} ${oneLine(path)}`
  return [timeOfDay(), '  ', color(String(status)), line]
}

export const connectionLine = (connection: ProxiedConnection): Text => [timeOfDay(), transfer(connection)]

function drainLine(type: TunnelType, inProgress: number): string {
  const what = type === 'tcp' ? 'connection' : 'request'
  return `Finishing ${inProgress} ${what}${inProgress === 1 ? '' : 's'}. Press Ctrl-C again to stop now.`
}

export function toTunnelError({ code, message }: TunnelRejected, keySource: ApiAccess['keySource']): Error {
  if (code === 'unauthorized') return keyRejected(message, keySource)
  if (code === 'invalid_request') return new UsageError(message)
  return new CommandError(code, message)
}
