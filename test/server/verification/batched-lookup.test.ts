// Concurrent lookups are combined, and none is answered by a query that was sent before it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBatchedLookup } from '../../../src/server/verification/batched-lookup.ts'

interface Query extends PromiseWithResolvers<ReadonlyMap<string, number>> {
  names: string[]
}

function lookupWithQueries() {
  const queries: Query[] = []
  const lookUp = createBatchedLookup<number>((names) => {
    const query = { names, ...Promise.withResolvers<ReadonlyMap<string, number>>() }
    queries.push(query)
    return query.promise
  })
  const respond = (index: number, value: number) => {
    const { names, resolve } = queries[index] as Query
    resolve(new Map(names.map((name) => [name, value])))
  }
  return { queries, lookUp, respond }
}

test('a lookup is sent at once, and those that arrive before its result are sent together', async () => {
  const { queries, lookUp, respond } = lookupWithQueries()
  const first = lookUp('a')
  assert.deepEqual(queries[0]?.names, ['a'])
  const others = ['b', 'c', 'b'].map(lookUp)
  respond(0, 1)
  assert.equal(await first, 1)
  assert.deepEqual(queries[1]?.names, ['b', 'c'])
  respond(1, 2)
  assert.deepEqual(await Promise.all(others), [2, 2, 2])
  assert.equal(queries.length, 2)
})

test('a lookup never gets the result of a query that was sent before it', async () => {
  const { queries, lookUp, respond } = lookupWithQueries()
  const before = lookUp('a')
  const after = lookUp('a')
  respond(0, 1)
  assert.equal(await before, 1)
  respond(1, 2)
  assert.equal(await after, 2)
  assert.equal(queries.length, 2)
})

test('a name that is not found is undefined', async () => {
  const lookUp = createBatchedLookup<number>(async () => new Map())
  assert.equal(await lookUp('a'), undefined)
})

test('a query that fails rejects its own lookups, and the next ones are sent', async () => {
  const { queries, lookUp, respond } = lookupWithQueries()
  const failed = lookUp('a')
  const next = lookUp('b')
  queries[0]?.reject(new Error('connection lost'))
  await assert.rejects(failed, /connection lost/)
  respond(1, 2)
  assert.equal(await next, 2)
})

test('a query without a response delays no other', async () => {
  const lookUp = createBatchedLookup<number>((names) =>
    names.includes('a') ? new Promise(() => {}) : Promise.resolve(new Map([['b', 2]])),
  )
  void lookUp('a')
  assert.equal(await lookUp('b'), 2)
})

test('the size of a query is limited', async () => {
  const sizes: number[] = []
  const lookUp = createBatchedLookup<number>(async (names) => {
    sizes.push(names.length)
    return new Map(names.map((name) => [name, Number(name)]))
  })
  const found = await Promise.all(Array.from({ length: 1_200 }, (_, index) => lookUp(String(index))))
  assert.deepEqual(found, [...found.keys()])
  assert.ok(Math.max(...sizes) <= 500, `${sizes}`)
})
