// A local server whose bytes the test writes and reads.
import { createServer, type Socket } from 'node:net'
import type { Test } from '../cleanup.ts'
import { collectText } from '../network/collect.ts'
import { listen } from '../network/listen.ts'
import { until } from '../until.ts'

interface LocalConnection {
  readonly socket: Socket
  received(): string
  /** Waits until this was received. */
  receives(text: string): Promise<unknown>
}

export async function startRawLocalServer(t: Test) {
  // A client also connects to see whether the server can be reached.
  const requests: LocalConnection[] = []
  let taken = 0
  const server = createServer((socket) => {
    socket.on('error', () => {})
    const received = collectText(socket)
    const receives = (text: string) => until(`it receives ${text}`, () => received().includes(text))
    socket.once('data', () => requests.push({ socket, received, receives }))
  })
  return {
    port: await listen(t, server),
    count: () => requests.length,
    /** The next connection with a request, once its head has arrived. */
    async next(): Promise<LocalConnection> {
      const index = taken
      taken += 1
      await until('a request arrives', () => requests[index]?.received().includes('\r\n\r\n'))
      return requests[index] as LocalConnection
    },
  }
}
