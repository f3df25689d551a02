// Tunnel clients in one process, which carry no requests. A message sets their number, or says that their
// edge is about to be lost; the response comes when all of them are open, or open again.
import { setTimeout as sleep } from 'node:timers/promises'
import { LocalServer } from '../../src/tunnel-client/local-server.ts'
import { runTunnel } from '../../src/tunnel-client/run.ts'

const { edge, keys } = JSON.parse(process.argv[2] as string) as { edge: string; keys: string[] }
/** A thousand at once would keep the edge busy for seconds, and time out. */
const HANDSHAKES_MAX = 20
const { signal } = new AbortController()
let opened = 0
let started = 0
/** How many were lost that had been open at the beginning. */
let lost = 0
let isLossExpected = false

function open(): void {
  const index = started++
  let isOpen = false
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
      isOpen = true
    },
    onLost(reason: string) {
      if (!isLossExpected) throw new Error(reason)
      // Reported again for each attempt that fails.
      if (!isOpen) return
      isOpen = false
      opened -= 1
      lost += 1
    },
    onRequest() {},
    onConnection() {},
    onNotice() {},
  }
  void runTunnel(options)
}

async function openAll(count: number): Promise<void> {
  while (opened < count) {
    while (started < count && started - opened < HANDSHAKES_MAX) open()
    await sleep(1)
  }
}

async function reopenAll(): Promise<void> {
  isLossExpected = true
  while (lost < started || opened < started) await sleep(1)
}

process.on('message', async (message: { count: number } | 'loss expected') => {
  await (message === 'loss expected' ? reopenAll() : openAll(message.count))
  process.send?.({})
})
process.once('disconnect', () => process.exit())
process.send?.({})
