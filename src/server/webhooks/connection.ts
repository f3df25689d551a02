// Opens the connection for one webhook request, to an address that was checked.
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { bareHost, pinnedLookup } from './targets.ts'

// Not a static import, which would also load the root certificates.
const tls = process.getBuiltinModule('node:tls')

/**
 * Limit of received bytes of TLS, before decryption. A chain of certificates may have 100 KiB. Node processes
 * messages of TLS as long as there are any, so key updates without end would occupy the event loop.
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
  // After its end, what is still buffered can be read.
  socket.on('close', () => socket.readableEnded || stream.destroy())
  return stream
}
