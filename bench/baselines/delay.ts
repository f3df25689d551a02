// A link with a round trip of some milliseconds: passes on what it receives after half of that, in order. Its
// buffer is larger than any window.
import { connect, createServer, type Socket } from 'node:net'
import { listening } from './listening.ts'

const { port, roundTripMs } = JSON.parse(process.argv[2] as string) as { port: number; roundTripMs: number }

function delay(from: Socket, to: Socket): void {
  const later = (act: () => void) => setTimeout(act, roundTripMs / 2)
  from.on('data', (chunk: Buffer) => later(() => to.write(chunk)))
  from.on('end', () => later(() => to.end()))
  from.on('close', () => later(() => to.destroy()))
  from.on('error', () => {})
}

const server = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => {
  const target = connect({ host: '127.0.0.1', port, noDelay: true, allowHalfOpen: true })
  delay(socket, target)
  delay(target, socket)
})
server.listen(0, '127.0.0.1', () => listening(server))
