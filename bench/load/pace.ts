// Requests at a constant rate. autocannon's own rate limit sends the requests of a second in one burst. Here
// each request has a due time, and its latency counts from then, even if all connections were busy.
import { connect, type Socket } from 'node:net'
import type { Outcome, Pace } from './jobs.ts'
import { prepareOne } from './requests.ts'

interface Connection {
  socket: Socket
  /** When its request was due; undefined while it is free. */
  due: number | undefined
  seen: Buffer
}

export async function pace({ url, connections, request, perSecond, seconds }: Pace): Promise<Outcome> {
  const { hostname, port } = new URL(url)
  const { requestBuffer } = prepareOne(url, request)
  const free: Connection[] = []
  const waiting: number[] = []
  const latencies: number[] = []
  let failed: Error | undefined

  const send = (connection: Connection, due: number) => {
    connection.due = due
    connection.socket.write(requestBuffer)
  }
  const onData = (connection: Connection, chunk: Buffer) => {
    connection.seen = connection.seen.length === 0 ? chunk : Buffer.concat([connection.seen, chunk])
    if (!isWhole(connection.seen)) return
    if (!connection.seen.toString('latin1', 9, 12).startsWith('2')) failed = new Error('not a 2xx response')
    latencies.push(performance.now() - (connection.due as number))
    connection.seen = Buffer.alloc(0)
    connection.due = undefined
    const due = waiting.shift()
    if (due === undefined) free.push(connection)
    else send(connection, due)
  }
  for (let index = 0; index < connections; index += 1) {
    const socket = connect(Number(port), hostname).setNoDelay(true)
    const connection: Connection = { socket, due: undefined, seen: Buffer.alloc(0) }
    socket.on('data', (chunk: Buffer) => onData(connection, chunk))
    socket.on('error', (error) => {
      failed = error
    })
    await new Promise((resolve) => socket.once('connect', resolve))
    free.push(connection)
  }

  const began = performance.now()
  const total = Math.floor(perSecond * seconds)
  for (let sent = 0; sent < total; ) {
    const now = performance.now()
    for (; sent < total && began + (sent * 1000) / perSecond <= now; sent += 1) {
      const due = began + (sent * 1000) / perSecond
      const connection = free.pop()
      if (connection) send(connection, due)
      else waiting.push(due)
    }
    // Not a timer: its resolution of a millisecond would batch requests.
    await new Promise(setImmediate)
  }
  while (latencies.length < total && !failed) await new Promise((resolve) => setTimeout(resolve, 5))
  return outcomeOf(latencies, (performance.now() - began) / 1000, failed)
}

function outcomeOf(latencies: number[], seconds: number, failed: Error | undefined): Outcome {
  if (failed) throw failed
  latencies.sort((a, b) => a - b)
  const at = (part: number) => latencies[Math.floor(latencies.length * part)] ?? Number.NaN
  const completed = latencies.length
  return { completed, seconds, perSecond: completed / seconds, p50: at(0.5), p99: at(0.99) }
}

function isWhole(seen: Buffer): boolean {
  const end = seen.indexOf('\r\n\r\n')
  if (end < 0) return false
  const length = /content-length: (\d+)/i.exec(seen.toString('latin1', 0, end))?.[1]
  if (length === undefined) throw new Error('a response without a length')
  return seen.length >= end + 4 + Number(length)
}
