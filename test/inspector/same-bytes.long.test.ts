// Recording never changes what visitors and the local server get, whatever the bytes are.
import assert from 'node:assert/strict'
import { createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { Recorder } from '../../src/inspector/recording/recorder.ts'
import { ExchangeStore } from '../../src/inspector/store/exchange-store.ts'
import { type ConnectionObserver, LocalServer } from '../../src/tunnel-client/local-server.ts'
import type { Test } from '../support/cleanup.ts'
import { listen } from '../support/network/listen.ts'
import { createRandom, type Random } from '../support/random.ts'
import { until } from '../support/until.ts'
import { socketPair, startSession } from '../yamux/support.ts'

const EXCHANGES = 10_000
const CONCURRENT = 50

interface Generated {
  readonly request: Buffer[]
  readonly response: Buffer[]
  /** The local server resets the connection behind the response. */
  readonly isReset: boolean
}

const bytesOf = (random: Random, length: number): Buffer =>
  Buffer.from(Array.from({ length }, () => random.whole(0, 256)))

/** Mostly HTTP, complete or not, and anything else. */
function generate(random: Random, number: number): Generated {
  const body = random.chance(0.002) ? Buffer.alloc(1_500_000, 'l') : bytesOf(random, random.whole(0, 300))
  const framings: (() => (string | Buffer)[])[] = [
    () => [`Content-Length: ${body.length}\r\n\r\n`, body],
    () => ['Transfer-Encoding: chunked\r\n\r\n', `${body.length.toString(16)}\r\n`, body, '\r\n0\r\n\r\n'],
    () => ['Connection: close\r\n\r\n', body],
    () => ['Content-Encoding: gzip\r\n\r\n', gzipSync(body)],
    () => ['Content-Type: text/event-stream\r\n\r\n', 'data: x\n\nid: ', body],
    () => ['Content-Length: 999999\r\n\r\n', body],
    () => ['Transfer-Encoding: chunked\r\n\r\n', body],
    () => [body],
  ]
  const method = random.pick(['GET', 'POST', 'HEAD', 'DELETE', 'G(T'])
  const upgrade = random.chance(0.1) ? 'Connection: Upgrade\r\nUpgrade: websocket\r\n' : ''
  const status =
    upgrade && random.chance(0.7) ? '101 Switching Protocols' : random.pick(['200 OK', '204 No', '500 x'])
  const request = join([`${method} /${number} HTTP/1.1\r\nHost: x\r\n${upgrade}`, ...random.pick(framings)()])
  const start = upgrade && status.startsWith('101') ? upgrade : ''
  const response = join([`HTTP/1.1 ${status}\r\n${start}`, ...random.pick(framings)()])
  return {
    request: split(random, request),
    response: split(random, random.chance(0.1) ? bytesOf(random, 200) : response),
    isReset: random.chance(0.1),
  }
}

const join = (parts: readonly (string | Buffer)[]): Buffer =>
  Buffer.concat(parts.map((part) => Buffer.from(part as Buffer)))

function split(random: Random, bytes: Buffer): Buffer[] {
  const parts: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const length = random.chance(0.5) ? bytes.length : random.whole(1, 1_000)
    parts.push(bytes.subarray(at, at + length))
    at += length
  }
  return parts
}

/** Gets requests whose paths are their numbers, and responds once one has arrived completely. */
async function startLocal(t: Test, generated: readonly Generated[]) {
  const received = new Map<number, Buffer>()
  const server = createServer({ allowHalfOpen: true }, (socket: Socket) => {
    const chunks: Buffer[] = []
    let bytes = 0
    socket.on('error', () => undefined)
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      bytes += chunk.length
      const [, number] =
        /^\S+ \/(\d+) /.exec(Buffer.concat(chunks.slice(0, 20)).toString('latin1', 0, 50)) ?? []
      const exchange = generated[Number(number)]
      if (!exchange || bytes < lengthOf(exchange.request)) return
      received.set(Number(number), Buffer.concat(chunks))
      for (const part of exchange.response) socket.write(part)
      if (exchange.isReset) socket.write('', () => socket.resetAndDestroy())
      else socket.end()
    })
  })
  return { port: await listen(t, server), received }
}

const lengthOf = (parts: readonly Buffer[]) => parts.reduce((bytes, part) => bytes + part.length, 0)

/** What visitors and the local server got, as far as it does not depend on when a reset arrived. */
async function runAll(t: Test, generated: readonly Generated[], observer: ConnectionObserver | undefined) {
  const { port, received } = await startLocal(t, generated)
  const localServer = new LocalServer({ target: { host: '127.0.0.1', port }, isHttp: true, observer })
  const [near, far] = await socketPair(t)
  const edge = startSession(near, { role: 'server' })
  startSession(far, { role: 'client', onStream: (stream) => localServer.serve(stream) })
  const responses: Buffer[] = []

  async function exchange(number: number): Promise<void> {
    const { request, isReset } = generated[number] as Generated
    const stream = edge.open()
    const chunks: Buffer[] = []
    stream.on('data', (chunk: Buffer) => chunks.push(Buffer.from(chunk)))
    for (const part of request) stream.write(Buffer.from(part))
    await new Promise((resolve) => {
      stream.once('end', () => stream.end())
      stream.once('close', resolve)
    })
    responses[number] = isReset ? Buffer.alloc(0) : Buffer.concat(chunks)
  }
  let next = 0
  const work = async () => {
    while (next < generated.length) {
      next += 1
      await exchange(next - 1)
    }
  }
  await Promise.all(Array.from({ length: CONCURRENT }, work))
  near.destroy()
  return { responses, requests: generated.map((_, number) => received.get(number)) }
}

function assertSame(actual: Awaited<ReturnType<typeof runAll>>, generated: readonly Generated[]): void {
  for (const [number, { request, response, isReset }] of generated.entries()) {
    const [expectedRequest, expectedResponse] = [Buffer.concat(request), Buffer.concat(response)]
    assert.ok(actual.requests[number]?.equals(expectedRequest), `request ${number}`)
    if (!isReset) assert.ok(actual.responses[number]?.equals(expectedResponse), `response ${number}`)
  }
}

const generateAll = (seed: string, count: number) => {
  const random = createRandom(seed)
  return Array.from({ length: count }, (_, number) => generate(random, number))
}

test('10,000 generated exchanges have the same bytes whether they are recorded or not', async (t) => {
  const generated = generateAll('same-bytes', EXCHANGES)
  assertSame(await runAll(t, generated, undefined), generated)
  const store = new ExchangeStore()
  const observer = new Recorder(store).observer({ name: 'app', url: '', target: '' })
  assertSame(await runAll(t, generated, observer), generated)
  await until('they were recorded', () => store.size === 500 && store.evicted > EXCHANGES / 2)
})

test('an observer or a listener of the store that throws changes nothing', async (t) => {
  const generated = generateAll('throws', 200)
  const fail = () => {
    throw new Error('observer')
  }
  assertSame(await runAll(t, generated, { onConnect: fail, onProblem: fail }), generated)
  const store = new ExchangeStore()
  store.listen({ onChange: fail })
  const observer = new Recorder(store).observer({ name: 'app', url: '', target: '' })
  assertSame(await runAll(t, generated, observer), generated)
})

test('a recorder whose parser blocks, until its queue is full, changes nothing', async (t) => {
  const body = Buffer.alloc(4_000_000, 'b')
  const response = [Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n`), body]
  const generated = Array.from({ length: 20 }, (_, number) => ({
    request: [Buffer.from(`GET /${number} HTTP/1.1\r\nHost: x\r\n\r\n`)],
    response,
    isReset: false,
  }))
  const store = new ExchangeStore()
  store.listen({
    onChange() {
      const end = performance.now() + 1
      while (performance.now() < end);
    },
  })
  const observer = new Recorder(store).observer({ name: 'app', url: '', target: '' })
  assertSame(await runAll(t, generated, observer), generated)
  await until('some were not recorded', () => store.all().some(({ state }) => state === 'unrecorded'))
})
