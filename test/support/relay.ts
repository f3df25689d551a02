// A relay between a client and a server that can be told to misbehave: to let nothing through, or to cut everything off.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { atEnd, type Test } from './cleanup.ts'

export interface Relay {
  url: string
  /** From now on answers are held back; the connections stay open. */
  hold(): void
  release(): void
  /** Ends every connection, and refuses new ones until `mend`. */
  cut(): void
  mend(): void
}

export async function startRelay(t: Test, target: string): Promise<Relay> {
  const { hostname, port } = new URL(target)
  const pairs = new Set<[client: Socket, server: Socket]>()
  let held = false
  let broken = false
  const relay = createServer((client) => {
    if (broken) return client.destroy()
    const server = connect(Number(port), hostname)
    const pair: [Socket, Socket] = [client, server]
    pairs.add(pair)
    client.pipe(server)
    server.on('data', (bytes) => client.write(bytes))
    if (held) server.pause()
    for (const socket of pair) {
      socket.on('error', () => {})
      socket.on('close', () => {
        pairs.delete(pair)
        for (const each of pair) each.destroy()
      })
    }
  }).listen(0, '127.0.0.1')
  await once(relay, 'listening')
  const cut = () => {
    broken = true
    for (const pair of pairs) for (const socket of pair) socket.destroy()
  }
  atEnd(t, () => {
    cut()
    relay.close()
  })
  return {
    url: `http://127.0.0.1:${(relay.address() as AddressInfo).port}`,
    hold() {
      held = true
      for (const [, server] of pairs) server.pause()
    },
    release() {
      held = false
      for (const [, server] of pairs) server.resume()
    },
    cut,
    mend: () => {
      broken = false
    },
  }
}
