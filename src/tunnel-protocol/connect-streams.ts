// Copies bytes between two streams, in both directions.
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { compact, YamuxStream } from '../yamux/index.ts'
import { freeAfterWrite } from './free-memory.ts'

/**
 * Node reads up to 64 KiB at once, and the frames of the tunnel are a part of that. When so much was read,
 * more follows in the same turn of the event loop, and leaves in the same write: often it is the end of a
 * message.
 */
const FULL_READ_BYTES = 63 * 1024

type OnBytes = (bytes: number) => void

/**
 * Each direction may end before the other. A failure of one stream resets the other, so that a receiver does
 * not mistake it for the end of the data. The callbacks get the size of each chunk that was written.
 */
export function connectStreams(a: Duplex, b: Duplex, onBytesFromA?: OnBytes, onBytesFromB?: OnBytes): void {
  copy(a, b, onBytesFromA)
  copy(b, a, onBytesFromB)
}

function copy(from: Duplex, to: Duplex, onBytes?: OnBytes): void {
  const uncork = () => {
    if (from instanceof YamuxStream) from.onTransfer()
    to.uncork()
  }
  from.on('data', (received: Buffer) => {
    const isHeld = to.writableCorked > 0
    const isSending = to.writableLength > 0 && !isHeld
    if (received.length >= FULL_READ_BYTES && !isSending && !isHeld) {
      to.cork()
      setImmediate(uncork)
    }
    const chunk = isSending ? compact(received) : received
    if (!to.write(chunk, freeAfterWrite(chunk))) from.pause()
    if (isHeld) to.uncork()
    onBytes?.(received.length)
  })
  to.on('drain', () => from.resume())
  // A socket without data emits its end although nothing reads it.
  if (from.readableEnded) to.end()
  else from.on('end', () => to.end())
  from.on('error', () => {})
  from.on('close', () => {
    if (!isComplete(from)) reset(to)
  })
}

/** Both directions have ended, as opposed to a reset. */
const isComplete = (stream: Duplex) => stream.readableEnded && stream.writableFinished

export function reset(stream: Duplex): void {
  // While a socket is ending, libuv refuses to reset it, and Node would leave it open. Only TCP has resets: a
  // peer notices the end of TLS by the missing alert.
  if (isTcp(stream) && !stream.writableEnded) stream.resetAndDestroy()
  else stream.destroy(new Error('The other side failed.'))
}

/** A Unix socket has no address. */
const isTcp = (stream: Duplex): stream is Socket =>
  stream instanceof Socket && !(stream instanceof TLSSocket) && stream.remoteAddress !== undefined
