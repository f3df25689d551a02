// Sends raw bytes over a socket, for requests that no HTTP client would send.
import { once } from 'node:events'
import { connect } from 'node:net'
import { until } from '../until.ts'
import { collectText } from './collect.ts'

/** Version and Transfer-Encoding of requests whose body two parsers may delimit differently. */
export const ambiguousFramings: readonly (readonly [version: string, header: string])[] = [
  ['1.1', 'Transfer-Encoding: identity\r\nTransfer-Encoding: chunked'],
  ['1.1', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked'],
  ['1.1', 'Transfer-Encoding: gzip, chunked'],
  ['1.1', 'Transfer-Encoding: ,chunked'],
  ['1.1', 'Transfer-Encoding: "chunked"'],
  ['1.1', 'Transfer-Encoding: Chunked'],
  ['1.1', 'Transfer-Encoding: identity'],
  ['1.1', 'Transfer-Encoding: chunked, identity'],
  ['1.1', 'Transfer-Encoding: xchunked'],
  ['1.1', 'Transfer-Encoding: chunked;q=1'],
  ['1.1', 'Transfer-Encoding:'],
  ['1.0', 'Transfer-Encoding: chunked'],
  ['1.0', 'Transfer-Encoding: chunked\r\nConnection: keep-alive'],
  ['2.0', 'Transfer-Encoding: chunked'],
]

interface ReceivedResponse {
  status: number
  head: string
  body: string
}

/** Sends the bytes and reads until the server closes, or until `waitMs` have passed without that. */
export async function sendRaw(
  url: string,
  bytes: string | Buffer,
  waitMs = 5_000,
): Promise<ReceivedResponse> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.setTimeout(waitMs, () => socket.destroy())
  const received = collectText(socket)
  socket.on('error', () => {})
  socket.write(bytes)
  await once(socket, 'close')
  const [head = '', ...body] = received().split('\r\n\r\n')
  return { status: Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0), head, body: body.join('\r\n\r\n') }
}

/** A connection to write to in pieces; the response is complete when the server has closed it. */
export function connectRaw(url: string) {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.setTimeout(10_000, () => socket.destroy())
  const received = collectText(socket)
  socket.on('error', () => {})
  return {
    write: (bytes: string) => socket.write(bytes),
    /** Waits until the server has sent this. */
    receives: (text: string) => until(`it sends ${text}`, () => received().includes(text)),
    close: () => socket.destroy(),
    response: once(socket, 'close').then(received),
  }
}
