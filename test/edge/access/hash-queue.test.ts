// The queue of password hashes at an edge, with hashes that the test completes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { HashQueue } from '../../../src/edge/access/hash-queue.ts'

function createQueue() {
  const queue = new HashQueue()
  const started: string[] = []
  const running: PromiseWithResolvers<string>[] = []
  /** `tunnel` is a workspace and a host: `acme/app`. */
  const add = (tunnel: string, name: string) => {
    const [workspace = '', host = ''] = tunnel.split('/')
    return queue.run({ workspace, host: `${host}.${workspace}` }, () => {
      started.push(name)
      const hash = Promise.withResolvers<string>()
      running.push(hash)
      return hash.promise
    })
  }
  /** Completes the hash that runs. */
  const complete = async () => {
    running.at(-1)?.resolve('hash')
    await turn()
  }
  const assertOrder = async (expected: string[]) => {
    for (let index = 1; index <= expected.length; index += 1) {
      await turn()
      assert.deepEqual(started, expected.slice(0, index))
      await complete()
    }
  }
  return { add, complete, assertOrder, started, running }
}

test('hashes run one at a time, and workspaces take turns', async () => {
  const { add, assertOrder } = createQueue()
  for (const name of ['a1', 'a2', 'a3', 'a4']) void add('a', name)
  void add('b', 'b1')
  void add('c', 'c1')
  void add('b', 'b2')
  await assertOrder(['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4'])
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

test('a hash that throws at once is reported, and the next one runs', async () => {
  const queue = new HashQueue()
  const tunnel = { workspace: 'a', host: 'x.a' }
  const failed = queue.run(tunnel, () => {
    throw new Error('not a hash')
  })
  await assert.rejects(failed as Promise<string>, /not a hash/)
  assert.equal(await Promise.race([queue.run(tunnel, async () => 'hash'), turn()]), 'hash')
})

test('the tunnels of a workspace take turns, which delays no other workspace', async () => {
  const { add, assertOrder } = createQueue()
  for (const name of ['x1', 'x2', 'x3']) void add('a/x', name)
  for (const name of ['y1', 'y2']) void add('a/y', name)
  void add('b/x', 'b1')
  await assertOrder(['x1', 'x2', 'b1', 'y1', 'x3', 'y2'])
})

test('20 hashes of a tunnel wait, 25 of a workspace, and 100 in total', async () => {
  const { add, complete, started } = createQueue()
  const isAccepted = (tunnel: string) => add(tunnel, tunnel) instanceof Promise
  // One of the 21 runs, and does not wait.
  for (let index = 0; index <= 20; index += 1) assert.ok(isAccepted('a/x'))
  assert.equal(add('a/x', ''), 'limited')
  for (let index = 0; index < 5; index += 1) assert.ok(isAccepted(`a/${index}`))
  assert.equal(add('a/y', ''), 'limited')
  await turn()
  while (started.length < 26) await complete()
  for (let index = 0; index < 100; index += 1) assert.ok(isAccepted(`b${index}/x`))
  assert.equal(add('c/x', ''), 'full')
  await complete()
  assert.ok(isAccepted('c/x'))
  while (started.length < 127) await complete()
})

test('if the queue is full, the workspace with the most hashes in it loses its latest one', async () => {
  const { add, complete, started } = createQueue()
  const rejected: string[] = []
  const wait = (tunnel: string, name: string) => {
    const hash = add(tunnel, name)
    assert.ok(hash instanceof Promise, name)
    hash.catch((error: Error) => rejected.push(`${name} ${error.name}`))
  }
  wait('a/x', 'a')
  for (let index = 0; index < 25; index += 1)
    for (const workspace of ['a', 'b', 'c', 'd']) wait(`${workspace}/${index}`, `${workspace}${index}`)
  // 60 workspaces with one hash each: then none in the queue has two more than another.
  for (let index = 0; index < 60; index += 1) wait(`e${index}/x`, `e${index}`)
  assert.equal(add('a/y', ''), 'full')
  await turn()
  assert.equal(rejected.length, 60)
  assert.deepEqual(rejected.slice(0, 2), ['a24 HashDisplaced', 'b24 HashDisplaced'])
  for (let count = 0; count < 101; count += 1) await complete()
  assert.equal(started.length, 101)
  assert.equal(started.filter((name) => name.startsWith('e')).length, 60)
  assert.equal(rejected.length, 60)
})
