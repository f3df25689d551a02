// Downloads over and over, and small requests meanwhile: how long these wait behind the others.
import { connect } from 'node:net'
import { findBounds, openConnection } from './connections.ts'
import type { Mixed, Outcome } from './jobs.ts'

const BUFFER_BYTES = 64 * 1024

export async function mix({ url, host, downloads, bytes, until }: Mixed): Promise<Outcome> {
  const { promise: done, resolve, reject } = Promise.withResolvers<void>()
  let downloaded = 0
  const count = (size: number) => {
    downloaded += size
  }
  const sockets = Array.from({ length: downloads }, () => {
    return downloadOverAndOver(new URL(url), `GET /down/${bytes} HTTP/1.1\r\nHost: ${host}\r\n\r\n`, count)
  })
  for (const socket of sockets) socket.on('error', reject)
  const times: number[] = []
  let sentAt = 0
  const small = Buffer.from(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
  const began = performance.now()
  const deadline = began + ('seconds' in until ? until.seconds * 1000 : 0)
  const connection = await openConnection({
    url,
    onError: reject,
    onResponse() {
      times.push(performance.now() - sentAt)
      const isOver = 'seconds' in until ? performance.now() >= deadline : times.length >= until.amount
      if (isOver) resolve()
      else send()
    },
  })
  const send = () => {
    sentAt = performance.now()
    connection.send(small)
  }
  send()
  await done.finally(() => {
    for (const socket of sockets) socket.destroy()
    connection.close()
  })
  const medianMs = times.toSorted((a, b) => a - b)[times.length >> 1] as number
  return { completed: downloaded, seconds: (performance.now() - began) / 1000, medianMs }
}

function downloadOverAndOver({ hostname, port }: URL, request: string, onBytes: (bytes: number) => void) {
  let head: Buffer | undefined = Buffer.alloc(0)
  let left = 0
  // Into one buffer that is reused, so that the load allocates nothing.
  const onread = {
    buffer: Buffer.alloc(BUFFER_BYTES),
    callback(size: number, buffer: Uint8Array) {
      onBytes(size)
      if (head) {
        head = Buffer.concat([head, buffer.subarray(0, size)])
        const bounds = findBounds(head)
        if (!bounds) return true
        left = bounds.end - head.length
        head = undefined
      } else left -= size
      if (left === 0) {
        head = Buffer.alloc(0)
        socket.write(request)
      }
      return true
    },
  }
  const socket = connect({ host: hostname, port: Number(port), noDelay: true, onread })
  socket.write(request)
  return socket
}
