// Slots that owners share: when they are full, the owner that has the most loses one.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { SharedSlots } from '../../../src/lib/shared-slots.ts'

const owner = fc.constantFrom('a', 'b', 'c', 'd', 'e')
const which = fc.constantFrom('oldest', 'newest')

test('whatever is added, deleted and displaced, the owner with the most entries loses one, and no other', () => {
  const operation = fc.oneof(
    fc.record({ kind: fc.constant('add'), owner }),
    fc.record({ kind: fc.constant('delete'), owner, index: fc.nat(9) }),
    fc.record({ kind: fc.constant('displace'), owner, which }),
  )
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 60 }), (operations) => {
      const slots = new SharedSlots<number>()
      const model = new Map<string, number[]>()
      const findEntries = (name: string) => model.get(name) ?? []
      const remove = (name: string, entry: number) =>
        model.set(
          name,
          findEntries(name).filter((each) => each !== entry),
        )
      for (const [entry, each] of operations.entries()) {
        if (each.kind === 'add') {
          slots.add(each.owner, entry)
          model.set(each.owner, [...findEntries(each.owner), entry])
        } else if ('index' in each) {
          const existing = findEntries(each.owner)[each.index]
          assert.equal(slots.delete(each.owner, existing ?? -1), existing !== undefined)
          if (existing !== undefined) remove(each.owner, existing)
        } else if ('which' in each) {
          const most = Math.max(0, ...[...model.values()].map(({ length }) => length))
          const displaced = slots.displace(each.owner, each.which)
          assert.equal(displaced !== undefined, most >= findEntries(each.owner).length + 2)
          const [heaviest = '', entries = []] =
            [...model].find(([, entries]) => entries.includes(displaced ?? -1)) ?? []
          if (displaced === undefined) continue
          assert.equal(entries.length, most)
          assert.equal(displaced, entries.at(each.which === 'oldest' ? 0 : -1))
          remove(heaviest, displaced)
        }
        const unable = slots.ownersUnableToDisplace()
        const most = Math.max(0, ...[...model.values()].map(({ length }) => length))
        assert.equal(unable === undefined, most < 2)
        for (const name of ['a', 'b', 'c', 'd', 'e']) {
          if (unable) assert.equal(unable.includes(name), findEntries(name).length >= most - 1)
          assert.equal([...slots.owners()].includes(name), findEntries(name).length > 0)
          assert.equal(slots.count(name), findEntries(name).length)
          assert.equal(slots.oldest(name), findEntries(name)[0])
        }
        assert.equal(slots.size, [...model.values()].flat().length)
      }
    }),
  )
})

test('in whatever order owners ask, all get what they want or an equal share of the slots', () => {
  const demands = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 12 })
  fc.assert(
    fc.property(
      demands,
      fc.integer({ min: 1, max: 64 }),
      fc.infiniteStream(fc.nat()),
      (wanted, max, picks) => {
        const slots = new SharedSlots<object>()
        const isWaiting = (index: number) => slots.count(`${index}`) < (wanted[index] ?? 0)
        const ask = (index: number) => {
          const isAdmitted = slots.size < max || slots.displace(`${index}`, 'newest') !== undefined
          if (isAdmitted) slots.add(`${index}`, {})
          return isAdmitted
        }
        for (let turn = 0; turn < 200; turn++) {
          const index = (picks.next().value as number) % wanted.length
          if (isWaiting(index)) ask(index)
        }
        while (wanted.some((_, index) => isWaiting(index) && ask(index)));
        assert.ok(slots.size <= max)
        const counts = wanted.map((_, index) => slots.count(`${index}`))
        for (const [index, count] of counts.entries())
          if (isWaiting(index))
            assert.ok(
              counts.every((other) => other <= count + 1),
              `${counts} of ${wanted}`,
            )
      },
    ),
  )
})

test('an entry is added once', () => {
  const slots = new SharedSlots<string>()
  slots.add('a', 'x')
  assert.throws(() => slots.add('a', 'x'), /already has this entry/)
  assert.deepEqual([slots.size, slots.count('a')], [1, 1])
  assert.ok(slots.delete('a', 'x'))
  assert.equal(slots.size, 0)
})
