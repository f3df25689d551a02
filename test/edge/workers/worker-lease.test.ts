// The lease that the primary of an edge passes to its workers.
import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { test } from 'node:test'
import { receiveLease, shareLease } from '../../../src/edge/workers/worker-lease.ts'
import type { Moment } from '../../../src/lib/credentials/lease.ts'

const LEASE_MS = 10_000

test('a lease ends in another process at the same instant', async () => {
  const other = fork(join(import.meta.dirname, 'lease-receiver.ts'), [], { execArgv: [] })
  await once(other, 'message')
  const until = performance.now() + 3_000
  other.send(shareLease({ monotonic: until, wall: Date.now() + 60_000 }))
  const [{ leftMs }] = (await once(other, 'message')) as [{ leftMs: number }]
  // The other process has looked at its clock before the message arrived here.
  assert.ok(leftMs <= 3_000, `${leftMs} ms`)
  assert.ok(leftMs >= until - performance.now(), `${leftMs} ms`)
  other.kill()
})

test('a lease of a worker ends after 10 seconds, or with that of the edge', () => {
  const receive = (edge: Moment) => receiveLease(shareLease(edge))
  const [startedAt, startedWall] = [performance.now(), Date.now()]
  const unlimited = receive({ monotonic: Number.POSITIVE_INFINITY, wall: Number.POSITIVE_INFINITY })
  assert.ok(unlimited.monotonic <= performance.now() + LEASE_MS)
  assert.ok(unlimited.monotonic > startedAt + LEASE_MS - 1_000)
  assert.ok(unlimited.wall >= startedWall + LEASE_MS && unlimited.wall <= Date.now() + LEASE_MS)
  const limited = receive({ monotonic: startedAt + 500, wall: startedWall + 400 })
  assert.ok(limited.monotonic <= startedAt + 500)
  assert.equal(limited.wall, startedWall + 400)
})
