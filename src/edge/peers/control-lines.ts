// The control stream between two edges: a JSON object per line, bounded in size and rate.
import type { Readable } from 'node:stream'

/** Room for the clients of a tunnel, and its access rules. */
const LINE_BYTES_MAX = 256 * 1024
/** Reading pauses when a peer sends more lines for this long. */
const LINES_PER_MS = 20
const BURST_MS = 100
const LF = 0x0a

/** The peer does not keep to the protocol, so its session is closed. */
export class PeerProtocolError extends Error {}

/** `onLine` may throw a PeerProtocolError. */
export function readLines(
  stream: Readable,
  onLine: (message: Readonly<Record<string, unknown>>) => void,
  onError: (error: PeerProtocolError) => void,
): void {
  let parts: Buffer[] = []
  let bytes = 0
  /** When the lines so far would have arrived at the highest rate. */
  let paidUntil = 0

  function limitRate(lines: number): void {
    const now = performance.now()
    paidUntil = Math.max(paidUntil, now) + lines / LINES_PER_MS
    if (paidUntil - now <= BURST_MS) return
    stream.pause()
    setTimeout(() => stream.resume(), paidUntil - now).unref()
  }

  function add(part: Buffer): void {
    bytes += part.length
    if (bytes > LINE_BYTES_MAX) throw new PeerProtocolError(`control line over ${LINE_BYTES_MAX} bytes`)
    if (part.length > 0) parts.push(part)
  }

  function take(): Readonly<Record<string, unknown>> {
    const line = parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts)
    parts = []
    bytes = 0
    return parseObject(line.toString())
  }

  stream.on('data', (chunk: Buffer) => {
    let start = 0
    let lines = 0
    try {
      for (let end = chunk.indexOf(LF); end >= 0; end = chunk.indexOf(LF, start)) {
        add(chunk.subarray(start, end))
        start = end + 1
        lines += 1
        onLine(take())
      }
      if (start < chunk.length) add(Buffer.from(chunk.subarray(start)))
      limitRate(lines)
    } catch (error) {
      if (!(error instanceof PeerProtocolError)) throw error
      onError(error)
    }
  })
}

export function parseObject(text: string): Readonly<Record<string, unknown>> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new PeerProtocolError('invalid JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new PeerProtocolError('a JSON object was expected')
  return value as Readonly<Record<string, unknown>>
}
