// Opens the connection of one webhook request, to an address that was checked.
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { bareHost, pinnedLookup } from './targets.ts'

// A static import would also load the root certificates at startup.
const tls = process.getBuiltinModule('node:tls')

/**
 * Limit of received bytes before decryption; a certificate chain may have 100 KiB. Node processes TLS
 * messages as long as there are any, so endless key updates would block the event loop.
 */
const ENCRYPTED_BYTES_MAX = 160 * 1_024

export const tooMuchReceived = () => new Error('too much was received before the response')

export function connect(url: URL, addresses: readonly string[]): Duplex {
  const host = bareHost(url)
  const isHttps = url.protocol === 'https:'
  const port = Number(url.port || (isHttps ? 443 : 80))
  const socket = connectTcp({ host, port, lookup: pinnedLookup(addresses) })
  if (!isHttps) return socket
  return tls.connect({
    socket: limitReceived(socket),
    host,
    servername: isIP(host) ? '' : host,
    ALPNProtocols: ['http/1.1'],
  })
}

/** Wraps the socket in a stream that fails beyond the limit. */
function limitReceived(socket: Socket): Duplex {
  let bytes = 0
  const stream = new Duplex({
    read: () => void socket.resume(),
    write: (chunk, _encoding, done) => void socket.write(chunk, done),
    final: (done) => void socket.end(done),
    destroy(error, done) {
      socket.destroy()
      done(error)
    },
  })
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > ENCRYPTED_BYTES_MAX) stream.destroy(tooMuchReceived())
    else if (!stream.push(chunk)) socket.pause()
  })
  socket.on('end', () => stream.push(null))
  socket.on('error', (error) => stream.destroy(error))
  // Buffered data can still be read after the end of the socket.
  socket.on('close', () => socket.readableEnded || stream.destroy())
  return stream
}
