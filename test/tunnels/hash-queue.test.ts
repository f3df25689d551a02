// The queue of password hashes at an edge, with hashes that the test completes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { HashQueue } from '../../src/tunnels/edge/access/hash-queue.ts'

function createQueue() {
  const queue = new HashQueue()
  const started: string[] = []
  const running: PromiseWithResolvers<string>[] = []
  const add = (group: string, name: string) =>
    queue.run(group, () => {
      started.push(name)
      const hash = Promise.withResolvers<string>()
      running.push(hash)
      return hash.promise
    })
  /** Completes the hash that runs. */
  const complete = async () => {
    running.at(-1)?.resolve('hash')
    await turn()
  }
  return { add, complete, started, running }
}

test('hashes run one at a time, and groups take turns', async () => {
  const { add, complete, started } = createQueue()
  for (const name of ['a1', 'a2', 'a3', 'a4']) void add('a', name)
  void add('b', 'b1')
  void add('c', 'c1')
  void add('b', 'b2')
  const expected = ['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4']
  for (let index = 1; index <= expected.length; index += 1) {
    await turn()
    assert.deepEqual(started, expected.slice(0, index))
    await complete()
  }
})

test('a failed hash is reported, and the next one runs', async () => {
  const { add, complete, running } = createQueue()
  const [failed, next] = [add('a', 'a1'), add('a', 'a2')]
  await turn()
  running[0]?.reject(new Error('out of memory'))
  await assert.rejects(failed as Promise<string>, /out of memory/)
  await turn()
  await complete()
  assert.equal(await next, 'hash')
})

test('20 hashes of a group wait, and 100 in total', async () => {
  const { add, complete, started } = createQueue()
  const isAccepted = (group: string) => add(group, group) !== undefined
  // One runs.
  for (let index = 0; index <= 20; index += 1) assert.ok(isAccepted('a'))
  assert.ok(!isAccepted('a'))
  for (let index = 0; index < 80; index += 1) assert.ok(isAccepted(`b${index % 5}`))
  assert.ok(!isAccepted('c'))
  await turn()
  await complete()
  assert.ok(isAccepted('c'))
  while (started.length < 102) await complete()
})
