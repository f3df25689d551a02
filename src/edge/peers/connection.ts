// A connection between peers, as yamux uses it.
import type { Socket } from 'node:net'
import type { SharedBufferBudget } from '../../tunnel-protocol/buffers/buffer-budget.ts'
import type { Connection, SendCallback, SessionOptions } from '../../yamux/index.ts'

/** How far the windows of all sessions with peers may grow. */
const totalGrowth = { bytesLeft: 256 * 1024 * 1024 }

/** Short, because requests wait for a peer that is gone; GETs then go to another edge. */
const KEEP_ALIVE = { intervalMs: 1_000, timeoutMs: 2_000 }

/** Options that the sessions of both directions share. */
export const sessionOptions = (pressure: Pick<SharedBufferBudget, 'isHigh'>) =>
  ({ keepAlive: KEEP_ALIVE, totalGrowth, pressure }) satisfies Partial<SessionOptions>

export function toConnection(socket: Socket): Connection {
  socket.setNoDelay(true)
  socket.setTimeout(0)
  return {
    get writable() {
      return socket.writable
    },
    on: socket.on.bind(socket) as Connection['on'],
    resume: () => socket.resume(),
    send(chunks: readonly Buffer[], done: SendCallback) {
      const last = chunks.at(-1)
      if (!last || !socket.writable) return process.nextTick(done, last && new Error('The connection ended.'))
      socket.cork()
      for (const chunk of chunks) socket.write(chunk, chunk === last ? done : undefined)
      socket.uncork()
    },
    end: () => socket.end(),
    destroy: () => socket.destroy(),
  }
}
