// The LRU cache, compared with an unbounded map.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createLruCache } from '../../../src/lib/collections/lru-cache.ts'

const call = fc.tuple(fc.constantFrom('get', 'set', 'delete'), fc.integer({ min: 0, max: 30 }).map(String))

function run(max: number, calls: [string, string][]) {
  const cache = createLruCache<number>(max)
  /** Everything that was not deleted, in the order of last use. */
  const expected = new Map<string, number>()
  calls.forEach(([method, key], index) => {
    const value = method === 'set' ? index : method === 'get' ? cache.get(key) : undefined
    if (method === 'get' && value !== undefined) assert.equal(value, expected.get(key))
    if (method === 'set') cache.set(key, index)
    if (method === 'delete') cache.delete(key)
    if (method === 'get' && value === undefined) return
    expected.delete(key)
    if (value !== undefined) expected.set(key, value)
  })
  return { cache, expected }
}

test('a cache keeps at least the most recently used half of its maximum, and nothing deleted', () => {
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 20 }), fc.array(call, { maxLength: 300 }), (max, calls) => {
      const { cache, expected } = run(max, calls)
      const [leastRecent] = [...expected].slice(-Math.floor(max / 2))
      if (leastRecent) assert.equal(cache.get(leastRecent[0]), leastRecent[1])
    }),
  )
})

test('a cache never exceeds its maximum', () => {
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 20 }), fc.array(call, { maxLength: 300 }), (max, calls) => {
      const { cache } = run(max, calls)
      const size = [...Array(31).keys()].filter((key) => cache.get(String(key)) !== undefined).length
      assert.ok(size <= max + (max % 2), `${size} of ${max}`)
    }),
  )
})
