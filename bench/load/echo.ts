// Messages of WebSockets, which the local server sends back. As on the other side, nothing parses the frames.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Echo, Outcome } from './jobs.ts'

export async function echo({ connections, messageBytes, until, ...target }: Echo): Promise<Outcome> {
  const message = createMessage(messageBytes)
  const sockets = await Promise.all(Array.from({ length: connections }, () => upgrade(target)))
  const { promise: done, resolve, reject } = Promise.withResolvers<void>()
  let completed = 0
  const began = performance.now()
  const deadline = began + ('seconds' in until ? until.seconds * 1000 : 0)
  for (const socket of sockets) {
    let received = 0
    socket.on('data', (chunk: Buffer) => {
      received += chunk.length
      if (received < message.length) return
      received = 0
      completed += 1
      const isOver = 'seconds' in until ? performance.now() >= deadline : completed >= until.amount
      if (isOver) resolve()
      else socket.write(message)
    })
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('a WebSocket was closed')))
    socket.write(message)
  }
  await done.finally(() => {
    for (const socket of sockets) socket.destroy()
  })
  return { completed, seconds: (performance.now() - began) / 1000 }
}

/** A frame with a mask of zeros, as clients send it. */
function createMessage(bytes: number): Buffer {
  const header = Buffer.alloc(14)
  header.set([0x82, 0xff])
  header.writeUIntBE(bytes, 4, 6)
  return Buffer.concat([header, Buffer.alloc(bytes, 'x')])
}

async function upgrade({ url, host }: Pick<Echo, 'url' | 'host'>): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname).setNoDelay(true)
  const headers = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n'
  const key = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
  socket.write(`GET /echo HTTP/1.1\r\nHost: ${host}\r\n${headers}${key}\r\n`)
  const [head] = (await once(socket, 'data')) as [Buffer]
  const text = head.toString('latin1')
  if (!text.startsWith('HTTP/1.1 101 ') || !text.endsWith('\r\n\r\n'))
    throw new Error(`unexpected response: ${text}`)
  return socket
}
