// Opens new connections to a server, and reports how long each takes to its first response.
import { connect } from 'node:net'
import type { Target } from './new-connections.ts'

const CONNECTIONS = 200
const INTERVAL_MS = 20

const { port, request }: Target = JSON.parse(process.argv[2] as string)

function measure(): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const began = performance.now()
  const socket = connect({ port, host: '127.0.0.1' })
  socket.once('error', reject)
  socket.once('close', () => reject(new Error('closed without a response')))
  socket.once('data', () => {
    resolve(performance.now() - began)
    socket.destroy()
  })
  socket.write(request)
  return promise
}

const measured: Promise<number>[] = []
const timer = setInterval(async () => {
  measured.push(measure())
  if (measured.length < CONNECTIONS) return
  clearInterval(timer)
  const durations = await Promise.all(measured)
  process.send?.(durations, () => process.exit())
}, INTERVAL_MS)
