// Which connections are evicted when too much is buffered.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  BufferBudget,
  type BufferUser,
  SharedBufferBudget,
} from '../../../src/tunnel-protocol/buffers/buffer-budget.ts'
import { ConnectionBuffers } from '../../../src/tunnel-protocol/buffers/connection-buffers.ts'
import { TransferRate } from '../../../src/tunnel-protocol/buffers/transfer-rate.ts'
import { Session } from '../../../src/yamux/index.ts'
import { until } from '../../support/until.ts'

class User implements BufferUser {
  readonly #budget: BufferBudget
  readonly network: string
  readonly #rate: number
  bufferedBytes = 0
  bufferPosition = -1
  isEvicted = false

  constructor(budget: BufferBudget, network: string, rate: number) {
    this.#budget = budget
    this.network = network
    this.#rate = rate
  }

  buffer(bytes: number): this {
    this.bufferedBytes += bytes
    this.#budget.change(this, bytes)
    return this
  }

  update(): void {}

  transferRate(): number {
    return this.#rate
  }

  evict(): void {
    this.isEvicted = true
    this.buffer(-this.bufferedBytes)
  }
}

/** Evictions happen in a later turn of the event loop. */
const settled = () => new Promise<void>((resolve) => void setImmediate(resolve))

test('the slowest of the network with the most bytes is evicted, and slower ones with few bytes are not', async () => {
  const budget = new BufferBudget(1_000)
  const few = new User(budget, 'a', 1).buffer(100)
  const [fast, slow, faster] = [20, 10, 30].map((rate) => new User(budget, 'b', rate).buffer(300))
  assert.equal(budget.isHigh, true)
  await settled()
  assert.deepEqual(
    [few, fast, slow, faster].map((user) => user?.isEvicted),
    [false, false, false, false],
  )
  few.buffer(1)
  await settled()
  assert.deepEqual(
    [few, fast, slow, faster].map((user) => user?.isEvicted),
    [false, false, true, false],
  )
  assert.equal(budget.bytes, 701)
})

test('when a shared budget is exceeded, users of the largest budget are evicted', async () => {
  const shared = new SharedBufferBudget(1_000)
  const budgets = Array.from({ length: 3 }, () => new BufferBudget(1_000, shared))
  for (const budget of budgets) shared.add(budget)
  const [heavy, light, other] = budgets.map((budget, index) =>
    Array.from({ length: index === 0 ? 8 : 1 }, (_, rate) => new User(budget, `${rate}`, rate).buffer(100)),
  )
  assert.equal(shared.bytes, 1_000)
  light?.[0]?.buffer(50)
  await settled()
  assert.equal(shared.bytes, 850)
  assert.deepEqual(
    [heavy, light, other].map((users) => users?.filter(({ isEvicted }) => isEvicted).length),
    [2, 0, 0],
  )
  assert.equal(budgets[1]?.isHigh, true)
})

test('when little is left of a shared budget, large budgets are high and small ones are not', () => {
  const shared = new SharedBufferBudget(4_000)
  const budgets = Array.from({ length: 5 }, () => new BufferBudget(1_000, shared))
  for (const budget of budgets) shared.add(budget)
  const users = budgets.map((budget, index) =>
    new User(budget, `${index}`, 1).buffer(index === 0 ? 100 : 500),
  )
  const areHigh = () => budgets.map(({ isHigh }) => isHigh)
  assert.equal(shared.bytes, 2_100)
  assert.deepEqual(areHigh(), [false, true, true, true, true])
  for (const user of users.slice(1)) user.buffer(400)
  assert.deepEqual(areHigh(), [true, true, true, true, true], 'less is left than the smallest one uses')
  for (const user of users.slice(1)) user.buffer(-500)
  assert.deepEqual(areHigh(), [false, false, false, false, false])
})

test('a new connection does not count as slow, nor a stalled one as fast for long', () => {
  const [idle, steady, stalled] = [new TransferRate(0), new TransferRate(0), new TransferRate(0)]
  stalled.add(100_000_000)
  for (let second = 1; second <= 60; second += 1) {
    steady.add(20_000)
    for (const rate of [idle, steady, stalled]) rate.estimate(second * 1_000)
  }
  const now = 60_000
  assert.ok(idle.estimate(now) < steady.estimate(now))
  assert.ok(new TransferRate(now).estimate(now) > steady.estimate(now))
  for (let second = 61; second <= 180; second += 1) {
    steady.add(20_000)
    for (const rate of [idle, steady, stalled]) rate.estimate(second * 1_000)
  }
  assert.ok(stalled.estimate(180_000) < steady.estimate(180_000))
})

test('a budget that is high measures its users again, and notices that their buffers have drained', async () => {
  const shared = new SharedBufferBudget(1_000)
  const budget = new BufferBudget(1_000, shared)
  shared.add(budget)
  const user = new User(budget, 'a', 1).buffer(600)
  let updates = 0
  let isDrained = false
  user.update = () => {
    updates += 1
    if (isDrained && user.bufferedBytes > 0) user.buffer(-user.bufferedBytes)
  }
  await until('both budgets have measured it', () => updates >= 2)
  assert.deepEqual([budget.isHigh, shared.isHigh], [true, true])
  isDrained = true
  await until('neither budget is high', () => !budget.isHigh && !shared.isHigh)
})

test('a stream that carries many small requests keeps nothing of them while it cannot send', () => {
  const connection = { writable: true, on() {}, resume() {}, send() {}, end() {}, destroy() {} }
  const session = new Session(connection, { role: 'client', onStream() {}, onClose() {} })
  const stream = session.open()
  const listeners = stream.listenerCount('close')
  for (let request = 0; request < 20; request += 1) {
    const buffers = new ConnectionBuffers(new BufferBudget(1_000_000), 0)
    buffers.attach(stream)
    stream.write('GET / HTTP/1.1\r\n\r\n')
    buffers.release()
  }
  assert.ok(stream.writableLength > 0)
  assert.equal(stream.listenerCount('close'), listeners)
})
