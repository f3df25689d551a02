// Sends the same requests to a server repeatedly, from a separate process, and reports the latency of each.
import { Agent, request as send } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Target } from './latency.ts'

const PAUSE_MS = 5

const agent = new Agent({ keepAlive: true })
const durations: number[] = []
let stopping = false

function measure({ url, key, method = 'GET' }: Target): Promise<number> {
  const began = performance.now()
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` }
  return new Promise((resolve, reject) => {
    const request = send(url, { agent, headers, method }, (response) => {
      response.on('error', reject).resume()
      response.on('end', () => {
        if (response.statusCode === 200 || response.statusCode === 201) resolve(performance.now() - began)
        else reject(new Error(`${url} returned ${response.statusCode}`))
      })
    })
    request.on('error', reject)
    request.end()
  })
}

const targets: Target[] = JSON.parse(process.argv[2] as string)
// Warm-up: connections are opened and code is loaded.
for (const target of [...targets, ...targets]) await measure(target)
process.once('message', () => {
  stopping = true
})
process.send?.('ready')
await Promise.all(
  targets.map(async (target) => {
    while (!stopping) {
      durations.push(await measure(target))
      await sleep(PAUSE_MS)
    }
  }),
)
process.send?.(durations, () => process.exit(0))
