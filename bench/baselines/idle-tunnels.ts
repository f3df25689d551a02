// Tunnel clients in one process, which carry no requests. A message sets their number.
import { setTimeout as sleep } from 'node:timers/promises'
import { LocalServer } from '../../src/tunnel-client/local-server.ts'
import { runTunnel } from '../../src/tunnel-client/run.ts'

const { edge, keys } = JSON.parse(process.argv[2] as string) as { edge: string; keys: string[] }
/** A thousand at once would keep the edge busy for seconds, and time out. */
const HANDSHAKES_MAX = 20
const { signal } = new AbortController()
let opened = 0
let started = 0

function open(): void {
  const index = started++
  const options = {
    edge,
    key: keys[index % keys.length] as string,
    findProxy: undefined,
    type: 'http' as const,
    name: `app-${index}`,
    pool: false,
    localServer: new LocalServer({ target: { host: '127.0.0.1', port: 9 }, isHttp: true }),
    signal,
    onOpen() {
      opened += 1
    },
    onLost(reason: string) {
      throw new Error(reason)
    },
    onRequest() {},
    onConnection() {},
    onNotice() {},
  }
  void runTunnel(options)
}

process.on('message', async ({ count }: { count: number }) => {
  while (opened < count) {
    while (started < count && started - opened < HANDSHAKES_MAX) open()
    await sleep(1)
  }
  process.send?.({})
})
process.once('disconnect', () => process.exit())
process.send?.({})
