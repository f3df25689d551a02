import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'

/** Below the ports that systems assign, so that no connection of another test gets one meanwhile. */
const PORTS = { from: 12_000, to: 32_000 }

/** A port that is free at the moment. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = randomInt(PORTS.from, PORTS.to)
    if (await canListen(port)) return port
  }
  throw new Error('no free port')
}

/** Above the ports that systems assign, and not among those of `freePort`. */
const RANGES = { from: 61_000, to: 65_500 }

/**
 * Adjacent ports that are free at the moment, for TCP tunnels. A port of a tunnel is not replaced by another.
 */
export async function freePorts(count: number) {
  for (let attempt = 0; attempt < 100; attempt++) {
    const first = randomInt(RANGES.from, RANGES.to - count)
    const last = first + count - 1
    const ports = Array.from({ length: count }, (_, index) => first + index)
    if ((await Promise.all(ports.map(canListen))).every(Boolean))
      return { first, last, range: `${first}-${last}` }
  }
  throw new Error('no free range of ports')
}

async function canListen(port: number): Promise<boolean> {
  const probe = createServer().listen(port, '127.0.0.1')
  try {
    await once(probe, 'listening')
    return true
  } catch {
    return false
  } finally {
    probe.close()
  }
}

export async function isListening(port: number, host = '127.0.0.1'): Promise<boolean> {
  const socket = connect(port, host)
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
