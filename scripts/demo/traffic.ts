// A sample web server, and traffic to it through a tunnel.
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const REQUEST_INTERVAL_MS = 250
const BODY_BYTES_MAX = 200_000

/** Serves a page, and bodies of any size under /bytes/. Resolves with its port. */
export async function startLocalServer(): Promise<number> {
  const server = createServer((request, response) => {
    const [, bytes] = /^\/bytes\/(\d{1,7})$/.exec(request.url ?? '') ?? []
    const body = bytes
      ? Buffer.alloc(Number(bytes), '.')
      : 'Hello from the sample web server, through a tunnel.\n'
    request.resume().once('end', () => response.end(body))
  })
  server.listen(0, 'localhost')
  await once(server, 'listening')
  server.unref()
  return (server.address() as AddressInfo).port
}

export interface Totals {
  requests: number
  bytes: number
}

/** Sends requests until the signal is aborted. `onSent` is called after each. */
export async function sendTraffic(
  { edge, host, signal }: { edge: URL; host: string; signal: AbortSignal },
  onSent: (totals: Totals) => void,
): Promise<Totals> {
  const totals = { requests: 0, bytes: 0 }
  while (!signal.aborted) {
    // Squared, so that most bodies are small.
    const [up, down] = [Math.random(), Math.random()].map((part) => Math.floor(part * part * BODY_BYTES_MAX))
    const { status, bytes } = await post(edge, host, `/bytes/${down}`, Buffer.alloc(up ?? 0))
    if (status === 200) {
      totals.requests += 1
      totals.bytes += bytes
    }
    onSent(totals)
    await sleep(REQUEST_INTERVAL_MS, undefined, { signal }).catch(() => undefined)
  }
  return totals
}

/** Connects to the edge directly, so that names under localhost need not resolve. */
const post = (edge: URL, host: string, path: string, body: Buffer) =>
  new Promise<{ status: number; bytes: number }>((resolve, reject) => {
    const options = {
      host: edge.hostname,
      port: edge.port,
      path,
      method: 'POST',
      headers: { host },
      agent: false,
    }
    const sent = request(options, (response) => {
      let bytes = body.length
      response.on('data', (chunk) => {
        bytes += chunk.length
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, bytes }))
      response.on('error', reject)
    })
    sent.on('error', reject)
    sent.end(body)
  })
