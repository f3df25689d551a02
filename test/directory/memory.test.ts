// The bounded memory, held against one without a bound.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createLruCache } from '../../src/directory/lru-cache.ts'

const use = fc.tuple(fc.constantFrom('get', 'set', 'delete'), fc.integer({ min: 0, max: 30 }).map(String))

function play(max: number, uses: [string, string][]) {
  const memory = createLruCache<number>(max)
  /** What there is to remember, in the order of the last use. */
  const truth = new Map<string, number>()
  uses.forEach(([act, key], turn) => {
    const value = act === 'set' ? turn : act === 'get' ? memory.get(key) : undefined
    if (act === 'get' && value !== undefined) assert.equal(value, truth.get(key))
    if (act === 'set') memory.set(key, turn)
    if (act === 'delete') memory.delete(key)
    if (act === 'get' && value === undefined) return
    truth.delete(key)
    if (value !== undefined) truth.set(key, value)
  })
  return { memory, truth }
}

test('a memory holds what was used last, half of its bound for sure, and never what was deleted', () => {
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 20 }), fc.array(use, { maxLength: 300 }), (max, uses) => {
      const { memory, truth } = play(max, uses)
      const [leastRecent] = [...truth].slice(-Math.floor(max / 2))
      if (leastRecent) assert.equal(memory.get(leastRecent[0]), leastRecent[1])
    }),
  )
})

test('a memory holds no more than its bound', () => {
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 20 }), fc.array(use, { maxLength: 300 }), (max, uses) => {
      const { memory } = play(max, uses)
      const held = [...Array(31).keys()].filter((key) => memory.get(String(key)) !== undefined)
      assert.ok(held.length <= max + (max % 2), `${held.length} of ${max}`)
    }),
  )
})
