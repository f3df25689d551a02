// What commands print about tunnels that run: lines on standard error, or events with --json.
import { oneLine } from '../../lib/net/untrusted-text.ts'
import type { ProxiedConnection, ProxiedRequest } from '../../tunnel-protocol/protocol.ts'
import { formatBytes } from '../bytes.ts'
import { formatDuration } from '../duration.ts'
import type { Io } from '../io.ts'
import { dim, green, joinLines, red, type Text, yellow } from '../style.ts'

/** `names` are those of all tunnels of the command, each at the start of its lines; none for a single one. */
export function openOutput(io: Io, names: readonly string[] = []) {
  const { info, infoSoon } = batchLines(io)
  const width = Math.max(...names.map((name) => name.length)) + 2
  return (name?: string): TunnelOutput => {
    const label = name === undefined ? '' : name.padEnd(width)
    const event = (event: string, fields: object) =>
      io.json && io.data({ event, ...(name !== undefined && { name }), ...fields }, '')
    return {
      event,
      info: (line) => info([label, line]),
      warn: (message) => info([label, yellow('!'), ` ${message}`]),
      fail: (message) => info([label, red('!'), ` ${message}`]),
      request(request) {
        if (io.json) event('request', { ...request, ms: Math.round(request.ms) })
        else infoSoon([label, requestLine(request)])
      },
      connection(connection) {
        if (io.json) event('connection', { ...connection, ms: Math.round(connection.ms) })
        else infoSoon([label, timeOfDay(), transfer(connection)])
      },
    }
  }
}

export interface TunnelOutput {
  /** A line of JSON, with --json only. */
  event(event: string, fields: object): void
  info(line: string): void
  warn(message: string): void
  fail(message: string): void
  request(request: ProxiedRequest): void
  connection(connection: ProxiedConnection): void
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

const timeOfDay = () => dim(new Date().toISOString().slice(11, 19))
const duration = (ms: number) => formatDuration(ms).padStart(8)

const transfer = ({ bytesIn, bytesOut, ms }: ProxiedConnection) =>
  `  ${duration(ms)}  ${formatBytes(bytesIn)} in, ${formatBytes(bytesOut)} out`

function requestLine({ method, path, status, ...transferred }: ProxiedRequest): Text {
  const color = status >= 500 ? red : status >= 400 ? yellow : green
  const line = `${transfer(transferred).padEnd(35)}  ${method.padEnd(6)} ${oneLine(path)}`
  return [timeOfDay(), '  ', color(String(status)), line]
}
