// Random interleavings of opens, writes, half-closes, resets and slow readers: what arrives is what was sent.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { YamuxStream } from '../../src/yamux/index.ts'
import { createRandom, type Random } from '../support/random.ts'
import { until } from '../support/until.ts'
import { type Peer, sessionPair } from './support.ts'

const STREAMS = 25
const SEEDS = ['a', 'b', 'c', 'd', 'e', 'f']
const PATTERN_BYTES = 65_521

/** Bytes that depend on their offset, so that a lost, repeated or moved byte is found. */
const pattern = Buffer.from(Array.from({ length: 4 * PATTERN_BYTES }, (_, at) => (at % PATTERN_BYTES) % 251))
const patternAt = (offset: number, bytes: number) =>
  pattern.subarray(offset % PATTERN_BYTES, (offset % PATTERN_BYTES) + bytes)

interface Direction {
  sent: number
  received: number
  isEnded: boolean
}

async function write(stream: YamuxStream, random: Random, direction: Direction): Promise<void> {
  for (let left = random.whole(0, 12); left > 0 && !stream.destroyed; left--) {
    const bytes = random.chance(0.5) ? random.whole(0, 200) : random.whole(0, 2 * PATTERN_BYTES)
    stream.write(patternAt(direction.sent, bytes))
    direction.sent += bytes
    if (random.chance(0.3)) await turn()
    if (stream.writableNeedDrain) await Promise.race([once(stream, 'drain'), once(stream, 'close')])
  }
  if (!stream.destroyed) stream.end()
}

async function read(stream: YamuxStream, random: Random, direction: Direction): Promise<void> {
  stream.on('data', (chunk: Buffer) => {
    assert.deepEqual(chunk, patternAt(direction.received, chunk.length))
    direction.received += chunk.length
    if (random.chance(0.3)) {
      stream.pause()
      const turns = random.whole(0, 20)
      void (async () => {
        for (let each = 0; each < turns; each++) await turn()
        stream.resume()
      })()
    }
  })
  stream.on('end', () => {
    direction.isEnded = true
  })
  await new Promise((resolve) => stream.once('close', resolve))
}

for (const seed of SEEDS)
  test(`every byte arrives once and in order, and buffers stay within windows (seed ${seed})`, async (t) => {
    const random = createRandom(seed)
    const { client, server } = await sessionPair(t)
    const directions = new Map<string, Direction>()
    const findDirection = (id: number, by: string) => {
      const key = `${id} from ${by}`
      const direction = directions.get(key) ?? { sent: 0, received: 0, isEnded: false }
      directions.set(key, direction)
      return direction
    }
    const live = new Set<YamuxStream>()
    const resets = new Set<number>()
    const run = async (stream: YamuxStream, name: string, peer: string) => {
      live.add(stream)
      const own = random.fork(`${stream.id} ${name}`)
      const over = read(stream, own.fork('read'), findDirection(stream.id, peer))
      write(stream, own.fork('write'), findDirection(stream.id, name)).catch(() => {})
      if (own.chance(0.15)) {
        resets.add(stream.id)
        for (let turns = own.whole(0, 100); turns > 0; turns--) await turn()
        if (!stream.destroyed) stream.destroy(new Error('reset by the test'))
      }
      await over
      live.delete(stream)
    }
    const accept = (peer: Peer, name: string, other: string) => {
      for (const stream of peer.streams.splice(0)) running.push(run(stream, name, other))
    }
    const running: Promise<void>[] = []
    const sample = setInterval(() => {
      for (const stream of live)
        assert.ok(stream.unreadBytes <= stream.receiveWindow, `${stream.unreadBytes} bytes unread`)
    }, 1)
    for (let opened = 0; opened < STREAMS; opened++) {
      const isClient = random.chance(0.5)
      const stream = (isClient ? client : server).open()
      running.push(isClient ? run(stream, 'client', 'server') : run(stream, 'server', 'client'))
      accept(server, 'server', 'client')
      accept(client, 'client', 'server')
      if (random.chance(0.5)) await turn()
    }
    await until(
      'all streams are over',
      () => {
        accept(server, 'server', 'client')
        accept(client, 'client', 'server')
        return live.size === 0 && client.session.streams + server.session.streams === 0
      },
      30_000,
    )
    clearInterval(sample)
    await Promise.all(running)
    let complete = 0
    for (const [key, { sent, received, isEnded }] of directions) {
      if (resets.has(Number.parseInt(key, 10))) assert.ok(received <= sent, key)
      else {
        assert.ok(isEnded, key)
        assert.equal(received, sent, key)
        complete += 1
      }
    }
    assert.ok(complete > STREAMS && resets.size > 0)
    assert.ok(!client.session.isClosed && !server.session.isClosed)
  })
