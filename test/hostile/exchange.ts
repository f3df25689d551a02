// Sends requests over one connection, and checks the responses.
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseResponses, type RawResponse } from '../support/api/responses.ts'
import type { Random } from '../support/random.ts'
import type { RawRequest } from './requests.ts'

/** Longer than every timeout of a server. */
const RESPONSE_TIMEOUT_MS = 30_000
const IDLE_MS = 100

interface Exchanged {
  responses: RawResponse[]
  /** What is wrong with them, if anything. */
  violation: string | undefined
}

/** Sends the requests in one write or in pieces, and waits until the connection is closed. */
export async function exchange(
  port: number,
  requests: readonly RawRequest[],
  random: Random,
): Promise<Exchanged> {
  const socket = connect(port, '127.0.0.1')
  const chunks: Buffer[] = []
  let lastAt = performance.now()
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    lastAt = performance.now()
  })
  let failure: string | undefined
  socket.on('error', (error: NodeJS.ErrnoException) => {
    failure = error.code
  })
  const closed = new Promise<'closed'>((resolve) => socket.once('close', () => resolve('closed')))
  const pieces = random.chance(0.3) ? random.whole(1, 2_000) : undefined
  await write(socket, Buffer.concat(requests.map(({ bytes }) => bytes)), pieces)
  const isExact = requests.every(({ isWhole }) => isWhole)
  let ended: 'closed' | 'late' = 'closed'
  if (isExact)
    ended = await Promise.race([closed, sleep(RESPONSE_TIMEOUT_MS, 'late' as const, { ref: false })])
  else while (!socket.closed && performance.now() - lastAt < IDLE_MS) await sleep(20)
  socket.destroy()
  const received = Buffer.concat(chunks)
  return checkResponses(received, requests, { isExact, ended, failure })
}

async function write(socket: Socket, bytes: Buffer, pieceBytes: number | undefined): Promise<void> {
  if (pieceBytes === undefined) {
    socket.write(bytes)
    return
  }
  for (let at = 0; at < bytes.length && socket.writable; at += pieceBytes) {
    socket.write(bytes.subarray(at, at + pieceBytes))
    // Yields to the event loop, so that the pieces are sent separately.
    await new Promise(setImmediate)
  }
}

interface Ending {
  /** All requests are complete, so each must get a response. */
  isExact: boolean
  ended: 'closed' | 'late'
  failure: string | undefined
}

function checkResponses(received: Buffer, requests: readonly RawRequest[], ending: Ending): Exchanged {
  try {
    const methods = requests.map(({ method }) => method)
    const { responses, rest, switched } = parseResponses(received, methods)
    return { responses, violation: switched ? undefined : violationOf(responses, rest, requests, ending) }
  } catch (error) {
    return { responses: [], violation: (error as Error).message }
  }
}

function violationOf(
  responses: readonly RawResponse[],
  rest: Buffer,
  requests: readonly RawRequest[],
  { isExact, ended, failure }: Ending,
): string | undefined {
  const closing = responses.findIndex(({ closes }) => closes)
  if (closing >= 0 && closing < responses.length - 1)
    return 'a response follows one that closes the connection'
  if (!isExact) return undefined
  if (responses.length > requests.length)
    return `${responses.length} responses to ${requests.length} requests`
  if (ended === 'late')
    return `${responses.length} of ${requests.length} responses, and the connection stays open`
  if (rest.length > 0) return `a response is incomplete (${failure ?? 'closed'}): ${rest.subarray(0, 100)}`
  if (responses.length < requests.length && closing < 0)
    return `${responses.length} of ${requests.length} responses, then ${failure ?? 'closed'}`
  return undefined
}
