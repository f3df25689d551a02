// Runs many tunnel clients in one process, with the code of `adit tunnel`. Their local servers send no
// responses. Tells the parent process how often tunnels were opened.
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { runTunnel } from '../../../src/tunnel-client/run.ts'

export interface HerdOptions {
  edge: string
  keys: string[]
  /** The number of tunnels; they use the keys in turn. */
  count: number
  /** The names of the tunnels begin with it. */
  prefix: string
}

const REPORT_MS = 50
/** Clients that connect at once for the first time. The test is about the second time. */
const STARTING_MAX = 200

const [{ edge, keys, count, prefix }] = (await once(process, 'message')) as [HerdOptions]
let openings = 0
let starting = 0

for (let index = 0; index < count; index++) {
  const key = keys[index % keys.length] as string
  const name = `${prefix}-${index}`
  while (starting >= STARTING_MAX) await sleep(1)
  starting += 1
  let isStarting = true
  // One for each client: a signal with thousands of listeners is slow.
  const { signal } = new AbortController()
  runTunnel({
    ...{ edge, key, name, signal },
    findProxy: undefined,
    localServer: { serve: (stream) => stream.destroy() },
    type: 'http',
    pool: false,
    onOpen() {
      if (isStarting) starting -= 1
      isStarting = false
      openings += 1
    },
    onLost: () => undefined,
    onRequest: () => undefined,
    onConnection: () => undefined,
    onNotice: () => undefined,
  }).catch((error: Error) => {
    process.send?.({ failed: `${name}: ${error.message}` })
  })
}

setInterval(() => process.send?.({ openings }), REPORT_MS)
