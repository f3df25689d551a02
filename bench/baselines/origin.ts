// The local server behind the tunnel and behind the proxy. It parses just enough of HTTP, on raw sockets: it
// shares the processors with what is measured.
import { createServer, type Socket } from 'node:net'
import { listening } from './listening.ts'

const CHUNK = Buffer.alloc(64 * 1024, 'x')
const SMALL = response('Hello from the local server.')

const server = createServer({ noDelay: true }, (socket) => {
  let head: Buffer = Buffer.alloc(0)
  /** Bytes of an upload, in total and still to come. */
  let upload = { total: 0, left: 0 }

  function onBody(chunk: Buffer): void {
    upload.left -= chunk.length
    if (upload.left <= 0) socket.write(response(String(upload.total)))
  }
  socket.on('error', () => socket.destroy())
  socket.on('data', (chunk: Buffer) => {
    if (upload.left > 0) return onBody(chunk)
    head = head.length === 0 ? chunk : Buffer.concat([head, chunk])
    const end = head.indexOf('\r\n\r\n')
    if (end < 0) return
    const text = head.toString('latin1', 0, end)
    const body = head.subarray(end + 4)
    head = Buffer.alloc(0)
    const bytes = /^GET \/down\/(\d+) /.exec(text)?.[1]
    if (bytes) return sendBytes(socket, Number(bytes))
    if (text.startsWith('GET /echo ')) return echo(socket)
    if (!text.startsWith('POST ')) return void socket.write(SMALL)
    const total = Number(/content-length: (\d+)/i.exec(text)?.[1])
    upload = { total, left: total }
    onBody(body)
  })
})
server.listen(0, '127.0.0.1', () => listening(server))

/** Sends frames of WebSockets back as they are. */
function echo(socket: Socket): void {
  socket.removeAllListeners('data')
  socket.write(
    'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
      'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n',
  )
  socket.on('data', (chunk: Buffer) => socket.write(chunk))
}

function response(body: string): Buffer {
  return Buffer.from(
    `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
}

function sendBytes(socket: Socket, bytes: number): void {
  socket.write(`HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ${bytes}\r\n\r\n`)
  let left = bytes
  const send = () => {
    while (left > 0) {
      const isRoom = socket.write(left < CHUNK.length ? CHUNK.subarray(0, left) : CHUNK)
      left -= CHUNK.length
      if (!isRoom) return void socket.once('drain', send)
    }
  }
  send()
}
