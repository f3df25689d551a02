// The serving side of a forwarded stream: reads its head, and connects it to a stream of the tunnel client.
import { ConnectionBuffers } from '../../tunnel-protocol/buffers/connection-buffers.ts'
import { connectStreams } from '../../tunnel-protocol/connect-streams.ts'
import { type ForwardProblem, problemResponse } from '../../tunnel-protocol/problems.ts'
import type { TunnelType } from '../../tunnel-protocol/protocol.ts'
import type { YamuxStream } from '../../yamux/index.ts'
import type { TunnelClient } from '../tunnels/client.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'
import { PeerProtocolError } from './control-lines.ts'
import { parseHead, type StreamHead, VERDICTS, type Verdict } from './messages.ts'

const HEAD_TIMEOUT_MS = 5_000
const VERDICT_TIMEOUT_MS = 5_000
/** How long the entry edge may take to read a rejection. */
const REJECTION_TIMEOUT_MS = 5_000

/** Calls `onHead` once with the head and the bytes after it, or `onError`. */
export function readHead(
  stream: YamuxStream,
  onHead: (head: StreamHead, rest: Buffer) => void,
  onError: (error: PeerProtocolError) => void,
): void {
  let received: Buffer = Buffer.alloc(0)
  const timeout = setTimeout(() => stream.destroy(), HEAD_TIMEOUT_MS).unref()
  const onData = (chunk: Buffer) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
    try {
      const parsed = parseHead(received)
      if (!parsed) return
      stop()
      onHead(parsed.head, parsed.rest)
    } catch (error) {
      stop()
      if (!(error instanceof PeerProtocolError)) throw error
      onError(error)
    }
  }
  const stop = () => {
    clearTimeout(timeout)
    stream.off('data', onData)
    stream.off('end', onEnd)
    stream.off('close', stop)
  }
  const onEnd = () => stream.destroy()
  stream.on('data', onData)
  stream.on('end', onEnd)
  stream.on('close', stop)
}

/**
 * Tells the entry edge why the stream is not connected, as a tunnel client says that it cannot connect: by a
 * response of its own. A line on the control stream could arrive after a reset.
 */
export function rejectForwarded(stream: YamuxStream, type: TunnelType, problem: ForwardProblem): void {
  stream.on('data', () => {})
  stream.end(type === 'tcp' ? formatVerdict(problem) : problemResponse(problem))
  const timeout = setTimeout(() => stream.destroy(), REJECTION_TIMEOUT_MS).unref()
  stream.once('close', () => clearTimeout(timeout))
}

const formatVerdict = (verdict: Verdict) => Buffer.of(VERDICTS.indexOf(verdict))

/**
 * For the entry edge: calls back once, with the verdict and the bytes after it. Without a verdict in time,
 * the peer is lost.
 */
export function readVerdict(
  stream: YamuxStream,
  onVerdict: (verdict: Verdict | 'lost', rest: Buffer) => void,
): void {
  const timeout = setTimeout(() => stream.destroy(), VERDICT_TIMEOUT_MS).unref()
  const finish = (verdict: Verdict | 'lost', rest: Buffer) => {
    clearTimeout(timeout)
    stream.off('data', onData)
    stream.off('end', onLost)
    stream.off('close', onLost)
    onVerdict(verdict, rest)
  }
  const onData = (chunk: Buffer) => finish(VERDICTS[chunk[0] as number] ?? 'lost', chunk.subarray(1))
  const onLost = () => finish('lost', Buffer.alloc(0))
  stream.on('data', onData)
  stream.on('end', onLost)
  stream.on('close', onLost)
}

/**
 * Copies bytes in both directions; memory counts for the workspace as that of a visitor's connection does.
 * The totals of the client grow, and not the usage, which the entry edge counts.
 */
export function connectForwarded(
  stream: YamuxStream,
  rest: Buffer,
  { load, type }: Tunnel,
  client: TunnelClient,
  upstream: YamuxStream,
): void {
  const { totals } = client
  const buffers = new ConnectionBuffers(load.buffers, performance.now())
  buffers.connect({ readable: stream, writable: stream })
  buffers.attach(upstream)
  stream.observer = buffers
  client.start()
  stream.once('close', () => {
    client.finish()
    buffers.release()
  })
  const onBytesIn = (bytes: number) => {
    totals.bytesIn += bytes
    buffers.transferredIn(bytes)
  }
  const onBytesOut = (bytes: number) => {
    totals.bytesOut += bytes
    buffers.transferredOut(bytes)
  }
  if (type === 'tcp') stream.write(formatVerdict('connected'))
  connectStreams(stream, upstream, onBytesIn, onBytesOut)
  if (rest.length === 0) return
  upstream.write(rest)
  onBytesIn(rest.length)
}
