// Random exchanges through a tunnel: each request has a token that every byte of its response must repeat, so
// that a response to somebody else is noticed. Clients and the local server abort some of them.
import { once } from 'node:events'
import { Agent, type IncomingMessage, type RequestListener, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../support/random.ts'

/** What the local server does with a request. */
const SERVER_PLANS = ['respond', 'delay', 'chunk', 'close', 'early', 'reset', 'cut', 'reset-body'] as const
type ServerPlan = (typeof SERVER_PLANS)[number]
const isHealthy = (plan: ServerPlan) => ['respond', 'delay', 'chunk', 'close'].includes(plan)
/** What the client does with its request. */
type ClientPlan = 'read' | 'abort' | 'abort-response'

interface Exchange {
  token: string
  size: number
  upload: boolean
  server: ServerPlan
  client: ClientPlan
}

const SMALL_MAX = 2_000
const LARGE = 300_000
const DELAY_MS = 20
const DEADLINE_MS = 30_000

export function planExchange(random: Random, token: string): Exchange {
  return {
    token,
    size: random.chance(0.05) ? LARGE : random.whole(1, SMALL_MAX),
    upload: random.chance(0.3),
    server: random.chance(0.6) ? 'respond' : random.pick(SERVER_PLANS),
    client: random.chance(0.8) ? 'read' : random.pick(['abort', 'abort-response']),
  }
}

const createBody = ({ token, size }: Pick<Exchange, 'token' | 'size'>) =>
  Buffer.alloc(size, `${token};`, 'latin1')

/** The local server: the plan is in the path, so that it has no state that could hide a confusion. */
export function answer(onViolation: (text: string) => void): RequestListener {
  return async (incoming, response) => {
    const [, token = '', plan, size] = (incoming.url ?? '').split('/')
    const { socket } = incoming
    const body = createBody({ token, size: Number(size) })
    // The client aborted its upload, or this server does so below.
    response.on('error', () => {})
    if (plan === 'reset') return void socket.resetAndDestroy()
    // The body is left unread. What remains of it must not reach the next request of the connection.
    if (plan === 'early') {
      response.writeHead(200, { 'x-token': token, 'content-length': body.length })
      return void response.end(body)
    }
    const uploaded = await read(incoming).catch(() => undefined)
    if (uploaded === undefined) return
    if (incoming.method === 'POST' && !uploaded.equals(body)) onViolation(`${token}: another upload`)
    if (plan === 'delay') await sleep(DELAY_MS)
    const head = { 'x-token': token, ...(plan === 'close' && { connection: 'close' }) }
    if (plan === 'chunk') {
      response.writeHead(200, head)
      response.write(body.subarray(0, body.length / 2))
      await sleep(1)
      return void response.end(body.subarray(body.length / 2))
    }
    response.writeHead(200, { ...head, 'content-length': body.length })
    if (plan !== 'cut' && plan !== 'reset-body') return void response.end(body)
    response.write(body.subarray(0, body.length / 2), () =>
      plan === 'cut' ? socket.end() : socket.resetAndDestroy(),
    )
  }
}

async function read(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of message) chunks.push(chunk)
  return Buffer.concat(chunks)
}

export interface Target {
  port: number
  host: string
}

/** Returns `complete`, `failed`, `aborted` (by this client), or throws on a response that is not its own. */
export async function exchange(
  target: Target,
  agent: Agent,
  plan: Exchange,
): Promise<'complete' | 'failed' | 'aborted'> {
  const { token, size, upload, server, client } = plan
  const sent = request({
    host: '127.0.0.1',
    port: target.port,
    agent,
    method: upload ? 'POST' : 'GET',
    path: `/${token}/${server}/${size}`,
    headers: { host: target.host },
    signal: AbortSignal.timeout(DEADLINE_MS),
  })
  const began = performance.now()
  // A reset may follow the response, or what this client aborts.
  sent.on('error', () => {})
  try {
    sent.end(upload ? createBody(plan) : '')
    if (client === 'abort') {
      await once(sent, 'finish')
      sent.destroy()
      return 'aborted'
    }
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    return await checkResponse(response, plan)
  } catch (error) {
    if (error instanceof Violation) throw error
    if (performance.now() - began >= DEADLINE_MS)
      throw new Violation(`${token}: no end, ${server}, ${client}`)
    return 'failed'
  }
}

class Violation extends Error {}

async function checkResponse(response: IncomingMessage, plan: Exchange) {
  const { token, client } = plan
  const expected = createBody(plan)
  const { statusCode: status = 0, headers } = response
  // An error of the edge.
  if (headers['x-token'] === undefined && [404, 502, 503].includes(status)) {
    await read(response)
    return 'failed'
  }
  if (status !== 200 || headers['x-token'] !== token)
    throw new Violation(`${token}: ${status} for ${headers['x-token']}`)
  let received = 0
  for await (const chunk of response) {
    if (!expected.subarray(received, received + chunk.length).equals(chunk))
      throw new Violation(`${token}: other bytes after ${received}`)
    received += chunk.length
    if (client === 'abort-response') {
      response.destroy()
      return 'aborted'
    }
  }
  if (received !== expected.length) throw new Violation(`${token}: ends after ${received} bytes`)
  return 'complete'
}

/** Whether the exchange must be complete unless the tunnel client is killed meanwhile. */
export const mustComplete = ({ server, client }: Exchange) => client === 'read' && isHealthy(server)

export const createAgent = () => new Agent({ keepAlive: true, maxSockets: 1 })
