// Clients that keep a server busy on connections that stay open, and others that connect and leave.
import { connect } from 'node:net'
import type { Target } from './new-connections.ts'

const KEPT_CONNECTIONS = 200
const CONNECTS_PER_SECOND = 400
const TICK_MS = 10
/** In which the server compiles what it runs. */
const WARM_UP_MS = 1_500

const { port, request }: Target = JSON.parse(process.argv[2] as string)
const open = () => connect({ port, host: '127.0.0.1', noDelay: true }).on('error', () => {})

function keepBusy(): void {
  const socket = open()
  socket.on('data', () => socket.write(request))
  socket.write(request)
}

function connectAndLeave(): void {
  const socket = open()
  socket.once('data', () => socket.destroy())
  socket.write(request)
}

for (let count = 0; count < KEPT_CONNECTIONS; count++) keepBusy()
const began = performance.now()
let connected = 0
setInterval(() => {
  const due = ((performance.now() - began) / 1_000) * CONNECTS_PER_SECOND
  for (; connected < due; connected++) connectAndLeave()
}, TICK_MS)
setTimeout(() => process.send?.('started'), WARM_UP_MS)
process.once('disconnect', () => process.exit())
