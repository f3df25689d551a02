// In which order workers apply a change, and what the primary waits for.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { KeyChanges } from '../../../src/edge/workers/key-changes.ts'

function setUp() {
  const sent: [worker: string, sequence: number, round: string][] = []
  const changes = new KeyChanges((worker, sequence, _change, round) => sent.push([worker, sequence, round]))
  changes.addWorker('1')
  changes.addWorker('2')
  let isApplied = false
  const apply = () =>
    changes.apply(['onRevoked', 'tok_1', 'revoked', 'hash']).then(() => {
      isApplied = true
    })
  return { changes, sent, apply, isApplied: () => isApplied }
}

test('a change is applied once more by all workers after the last one has closed its clients', async () => {
  const { changes, sent, apply, isApplied } = setUp()
  const applied = apply()
  changes.onApplied('1', 1)
  // A request that the first worker has admitted may reach the second one now.
  await setImmediate()
  assert.deepEqual(sent, [
    ['1', 1, 'close'],
    ['2', 1, 'close'],
  ])
  changes.onApplied('2', 1)
  await setImmediate()
  assert.deepEqual(sent.slice(2), [
    ['1', 2, 'end'],
    ['2', 2, 'end'],
  ])
  changes.onApplied('1', 2)
  await setImmediate()
  assert.equal(isApplied(), false)
  changes.onApplied('2', 2)
  await applied
})

test('a worker that starts while another one has not closed its clients applies the second round', async () => {
  const { changes, sent, apply } = setUp()
  const applied = apply()
  changes.onApplied('1', 1)
  changes.addWorker('3')
  changes.onApplied('2', 1)
  await setImmediate()
  assert.deepEqual(
    sent.slice(2).map(([worker]) => worker),
    ['1', '2', '3'],
  )
  for (const worker of ['1', '2', '3']) changes.onApplied(worker, 2)
  await applied
})

test('a change does not wait for a worker that has exited, and waits for the others', async () => {
  const { changes, sent, apply, isApplied } = setUp()
  const applied = apply()
  changes.removeWorker('2')
  await setImmediate()
  assert.equal(sent.length, 2)
  changes.onApplied('1', 1)
  await setImmediate()
  assert.deepEqual(sent.slice(2), [['1', 2, 'end']])
  assert.equal(isApplied(), false)
  changes.onApplied('1', 2)
  await applied
})

test('changes at the same time do not wait for each other', async () => {
  const { changes, apply } = setUp()
  const first = apply()
  const second = apply()
  for (const sequence of [2, 3])
    for (const worker of ['1', '2']) {
      changes.onApplied(worker, sequence)
      await setImmediate()
    }
  await second
  for (const sequence of [1, 4])
    for (const worker of ['1', '2']) {
      changes.onApplied(worker, sequence)
      await setImmediate()
    }
  await first
})
