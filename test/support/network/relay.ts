// A TCP proxy with fault injection: stalled, delayed, closed or black-holed connections, or another target.
import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { atEnd, type Test } from '../cleanup.ts'
import { listen } from './listen.ts'

export interface Relay {
  url: string
  port: string
  /** Stalls all responses; connections stay open. */
  hold(): void
  release(): void
  /** Delays responses by what the function returns; those on one connection stay in order. */
  delay(howLongMs: () => number): void
  /** Closes every connection, and rejects new ones until `mend`. */
  cut(): void
  mend(): void
  /** Black-holes every open connection, like a router that loses its state. New ones work. */
  blackhole(): void
  /** Sends new connections to another target, like a DNS change. */
  retarget(target: string): void
}

export async function startRelay(t: Test, target: string): Promise<Relay> {
  let address = new URL(target)
  const pairs = new Set<[client: Socket, server: Socket]>()
  const blackholed = new Set<Socket>()
  let held = false
  let broken = false
  let howLongMs = () => 0
  const relay = createServer((client) => {
    // Closed, and not reset: what the client has sent is read first.
    if (broken) return void client.once('data', () => client.destroy()).on('error', () => {})
    const server = connect(Number(address.port), address.hostname)
    const pair: [Socket, Socket] = [client, server]
    pairs.add(pair)
    client.pipe(server)
    let passed: Promise<unknown> = Promise.resolve()
    server.on('data', (bytes) => {
      const ms = howLongMs()
      passed = Promise.all([passed, ms > 0 && sleep(ms)]).then(() => client.write(bytes))
    })
    if (held) server.pause()
    for (const socket of pair) {
      socket.on('error', () => {})
      socket.on('close', () => {
        if (!pairs.delete(pair)) return
        for (const each of pair) each.destroy()
      })
    }
  })
  const port = String(await listen(t, relay))
  const cut = () => {
    broken = true
    for (const socket of [...[...pairs].flat(), ...blackholed]) socket.destroy()
  }
  atEnd(t, cut)
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    hold() {
      held = true
      for (const [, server] of pairs) server.pause()
    },
    release() {
      held = false
      for (const [, server] of pairs) server.resume()
    },
    delay(newDelay) {
      howLongMs = newDelay
    },
    cut,
    mend: () => {
      broken = false
    },
    blackhole() {
      for (const pair of pairs)
        for (const socket of pair) {
          blackholed.add(socket)
          socket.unpipe()
          socket.pause()
        }
      pairs.clear()
    },
    retarget(target) {
      address = new URL(target)
    },
  }
}
