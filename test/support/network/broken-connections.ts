// Broken client connections: openings of several protocols, cut after any byte and ended in several ways.
// The surface (host, paths, credentials) is a parameter; every choice follows from the seed.
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { createRandom } from '../random.ts'

/** The bytes of a well-behaved client. */
export interface Opening {
  name: string
  bytes: Buffer
}

/** A TCP RST immediately, or after the response; a FIN; or no further reads or writes. */
const endings = ['reset', 'late reset', 'half-close', 'stall'] as const
type Ending = (typeof endings)[number]

export interface BrokenConnection {
  opening: Opening
  /** How many bytes of the opening are sent. */
  cut: number
  ending: Ending
}

export interface Surface {
  host: string
  /** Header lines of an authenticated request, each ended by CRLF. */
  headers?: string
  /** A path for GET. */
  get: string
  /** A path for POST, with a JSON body that it accepts. */
  post: string
  body: string
  /** Openings that only this surface has. */
  more?: Record<string, string>
}

export function openingsFor({ host, headers = '', get, post, body, more = {} }: Surface): Opening[] {
  const getHead = `GET ${get} HTTP/1.1\r\nHost: ${host}\r\n${headers}`
  const postHead = `POST ${post} HTTP/1.1\r\nHost: ${host}\r\n${headers}Content-Type: application/json\r\n`
  const sized = `Content-Length: ${body.length}\r\n`
  const chunk = `${body.length.toString(16)}\r\n${body}\r\n`
  const webSocket =
    'Connection: Upgrade\r\nUpgrade: websocket\r\n' +
    'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
  const h2c = 'Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n'
  const texts: Record<string, string> = {
    ...more,
    CONNECT: `CONNECT ${host}:443 HTTP/1.1\r\nHost: ${host}\r\n\r\nmore`,
    'CONNECT without a host': 'CONNECT x:1 HTTP/1.1\r\n\r\n',
    'CONNECT with a body': `CONNECT x:1 HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n0123456789`,
    'CONNECT after a request': `${getHead}\r\nCONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n`,
    'WebSocket upgrade': `${getHead}${webSocket}\r\n\x81\x00`,
    'upgrade with a body': `${postHead}Connection: Upgrade\r\nUpgrade: websocket\r\n${sized}\r\n${body}`,
    'h2c upgrade': `${getHead}Connection: Upgrade, HTTP2-Settings\r\n${h2c}\r\n`,
    'HTTP/2 preface': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0',
    GET: `${getHead}\r\n`,
    'GET of HTTP/1.0': `GET ${get} HTTP/1.0\r\n${headers}\r\n`,
    'POST with a length': `${postHead}${sized}\r\n${body}`,
    'POST in chunks': `${postHead}Transfer-Encoding: chunked\r\n\r\n${chunk}0\r\n\r\n`,
    'POST that expects 100-continue': `${postHead}Expect: 100-continue\r\n${sized}\r\n${body}`,
    'POST without credentials': `POST ${post} HTTP/1.1\r\nHost: ${host}\r\n${sized}\r\n${body}`,
    'pipelined requests': `${getHead}\r\n${postHead}${sized}\r\n${body}${getHead}\r\n`,
    'two lengths': `${postHead}${sized}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    'malformed request': `FETCH ${get} HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
  }
  const openings = Object.entries(texts).map(([name, text]) => ({ name, bytes: Buffer.from(text, 'latin1') }))
  return [...openings, { name: 'TLS ClientHello', bytes: clientHello(host) }]
}

/** A TLS 1.2 ClientHello with one cipher suite and a server name. */
function clientHello(host: string): Buffer {
  const name = Buffer.from(host)
  const sized = (...parts: Buffer[]) => {
    const all = Buffer.concat(parts)
    return Buffer.concat([Buffer.from([all.length >> 8, all.length & 0xff]), all])
  }
  const serverName = Buffer.concat([Buffer.from([0, 0]), sized(sized(Buffer.from([0]), sized(name)))])
  const hello = Buffer.concat([
    Buffer.from([3, 3]),
    Buffer.alloc(32, 'r'),
    Buffer.from([0]),
    sized(Buffer.from([0xc0, 0x2f])),
    Buffer.from([1, 0]),
    sized(serverName),
  ])
  return Buffer.concat([Buffer.from([22, 3, 1]), sized(Buffer.from([1, 0]), sized(hello))])
}

/** Every prefix of every opening, alternating between the endings. */
export function* everyPrefix(openings: readonly Opening[]): Generator<BrokenConnection> {
  let made = 0
  for (const opening of openings)
    for (let cut = 0; cut <= opening.bytes.length; cut++)
      yield { opening, cut, ending: endings[made++ % endings.length] as Ending }
}

/** Every prefix of every opening with every ending. */
export function* everyCut(openings: readonly Opening[]): Generator<BrokenConnection> {
  for (const opening of openings)
    for (let cut = 0; cut <= opening.bytes.length; cut++)
      for (const ending of endings) yield { opening, cut, ending }
}

/** As many as `count`; half of them send the whole opening, since most handlers run only then. */
export function* randomCuts(
  openings: readonly Opening[],
  { seed, count }: { seed: string; count: number },
): Generator<BrokenConnection> {
  const random = createRandom(seed)
  for (let made = 0; made < count; made++) {
    const opening = random.pick(openings)
    const { length } = opening.bytes
    yield {
      opening,
      cut: random.chance(0.5) ? length : random.whole(0, length + 1),
      ending: random.pick(endings),
    }
  }
}

const CONCURRENCY = 32
const STALLED_MAX = 200
/** A server that is waiting for the rest of a request sends nothing. */
const RESPONSE_WAIT_MS = 10
const CLOSE_WAIT_MS = 200

/** Makes all of the connections, some at a time, and returns how many there were; none is left open. */
export async function breakConnections(
  port: number,
  connections: Iterable<BrokenConnection>,
  shouldStop: () => boolean = () => false,
): Promise<number> {
  let made = 0
  const stalled: Socket[] = []
  const queue = connections[Symbol.iterator]()
  const work = async () => {
    for (let next = queue.next(); !next.done && !shouldStop(); next = queue.next()) {
      await breakOne(port, next.value, stalled)
      made++
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, work))
  for (const socket of stalled) socket.resetAndDestroy()
  return made
}

async function breakOne(port: number, { opening, cut, ending }: BrokenConnection, stalled: Socket[]) {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.on('error', () => {})
  try {
    await once(socket, 'connect')
  } catch {
    return
  }
  const bytes = opening.bytes.subarray(0, cut)
  if (cut > 0) await new Promise((resolve) => socket.write(bytes, resolve))
  switch (ending) {
    case 'reset':
      socket.resetAndDestroy()
      break
    case 'late reset':
      await within(RESPONSE_WAIT_MS, new Promise((resolve) => socket.once('data', resolve)), closed)
      socket.resetAndDestroy()
      break
    case 'half-close':
      socket.resume()
      socket.end()
      socket.once('end', () => socket.destroy())
      await within(CLOSE_WAIT_MS, closed)
      socket.destroy()
      break
    case 'stall':
      socket.pause()
      stalled.push(socket)
      if (stalled.length > STALLED_MAX) stalled.shift()?.resetAndDestroy()
      return
  }
  await closed
}

function within(ms: number, ...events: Promise<unknown>[]): Promise<unknown> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  return Promise.race([promise, ...events]).finally(() => clearTimeout(timer))
}

/** The open descriptors of a process; undefined without /proc. */
export const openDescriptors = (pid: number): number | undefined => {
  try {
    return readdirSync(`/proc/${pid}/fd`).length
  } catch {
    return undefined
  }
}

/** The connections of a process to a port. */
export function connectionsTo(pid: number, port: number): number {
  const sockets = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((descriptor) => {
      try {
        return readlinkSync(`/proc/${pid}/fd/${descriptor}`)
      } catch {
        // Closed meanwhile.
        return []
      }
    }),
  )
  const hex = port.toString(16).toUpperCase().padStart(4, '0')
  const rows = readFileSync(`/proc/${pid}/net/tcp`, 'utf8').trim().split('\n').slice(1)
  return rows
    .map((row) => row.trim().split(/\s+/))
    .filter(
      ([, , remote = '', , , , , , , inode]) =>
        remote.endsWith(`:${hex}`) && sockets.has(`socket:[${inode}]`),
    ).length
}

/** Lines that are not JSON log entries, such as a stack trace, or have the level error or higher. */
export const errorsIn = (stderr: string): string[] =>
  stderr.split('\n').filter((line) => line !== '' && !/^\{"level":"(debug|info|warn)"/.test(line))
