// One large download or upload.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { findBounds } from './connections.ts'
import type { Outcome, Transfer } from './jobs.ts'

const CHUNK = Buffer.alloc(64 * 1024, 'x')

export async function transfer({ url, host, direction, bytes }: Transfer): Promise<Outcome> {
  const { hostname, port } = new URL(url)
  const target = { host: hostname, port: Number(port), noDelay: true }
  const began = performance.now()
  await (direction === 'down' ? download : upload)(target, host, bytes)
  return { completed: bytes, seconds: (performance.now() - began) / 1000 }
}

interface Target {
  host: string
  port: number
  noDelay: boolean
}

async function download(target: Target, host: string, bytes: number): Promise<void> {
  let head: Buffer | undefined = Buffer.alloc(0)
  let received = 0
  let expected = 0
  const { promise: done, resolve, reject } = Promise.withResolvers<void>()
  const read = (chunk: Buffer) => {
    received += chunk.length
    if (head) {
      head = Buffer.concat([head, chunk])
      const bounds = findBounds(head)
      if (bounds) {
        expected = bounds.end
        head = undefined
      }
    }
    if (!head && received >= expected) resolve()
  }
  // Into one buffer that is reused, so that the load allocates nothing.
  const onread = {
    buffer: Buffer.alloc(CHUNK.length),
    callback(size: number, buffer: Uint8Array) {
      read(Buffer.from(buffer.buffer, buffer.byteOffset, size))
      return true
    },
  }
  const socket = connect({ ...target, onread })
  socket.on('error', reject)
  socket.on('close', () => reject(new Error('the download was cut off')))
  socket.write(`GET /down/${bytes} HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
  await done
  socket.destroy()
  if (received < bytes) throw new Error(`only ${received} bytes were received`)
}

async function upload(target: Target, host: string, bytes: number): Promise<void> {
  const socket = connect(target)
  const response = once(socket, 'data')
  socket.write(`POST /up HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${bytes}\r\n\r\n`)
  await Promise.all([response, writeBytes(socket, bytes)])
  const [head] = (await response) as [Buffer]
  socket.destroy()
  if (!head.toString('latin1').endsWith(`\r\n\r\n${bytes}`)) throw new Error(`unexpected response: ${head}`)
}

async function writeBytes(socket: Socket, bytes: number): Promise<void> {
  for (let left = bytes; left > 0; left -= CHUNK.length)
    if (!socket.write(left < CHUNK.length ? CHUNK.subarray(0, left) : CHUNK)) await once(socket, 'drain')
}
