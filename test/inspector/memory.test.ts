// What the recorder keeps takes no more memory than it counts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { ExchangeStore } from '../../src/inspector/store/exchange-store.ts'
import { frame, openWebSocket, repeat } from './websocket-support.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

function usedBytes(): number {
  collectGarbage()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

const MiB = 1024 * 1024

test('a message that never ends, in fragments of one byte, takes the memory that is counted', () => {
  const store = new ExchangeStore()
  const parser = openWebSocket(store)
  parser.fromVisitor(frame(0x01, Buffer.from('x')), 0)
  const fragments = repeat(frame(0x00, Buffer.from('x')), 10_000)
  const before = usedBytes()
  for (let second = 1; second <= 20; second += 1) parser.fromVisitor(fragments, 1_000 * second)
  assert.equal(store.all()[0]?.state, 'pending')
  assert.ok(usedBytes() - before < store.bytes + MiB)
  assert.ok(store.bytes > 200_000)
  parser.closed(0)
})
