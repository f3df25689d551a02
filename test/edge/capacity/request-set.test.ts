// What a full tunnel does for a request that finds no slot.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RequestSet } from '../../../src/edge/ingress/request-set.ts'

const SLOTS = 500
const [ONE, OTHER] = ['203.0.113.1', '203.0.113.2']

/** A set that counts how often it looks at the network of a request, and which requests it evicts. */
class ObservedSet extends RequestSet {
  looks = 0
  readonly evicted: string[] = []

  constructor() {
    super(SLOTS, 'tunnelPosition')
  }

  addFrom(network: string, rate: number): void {
    const request = {
      tunnelPosition: -1,
      workspacePosition: -1,
      getNetwork: () => {
        this.looks += 1
        return network
      },
      get network() {
        return this.getNetwork()
      },
      transferRate: () => rate,
      checkProgress: () => true,
      evict: () => {
        this.evicted.push(`${network} at ${rate}`)
        this.delete(request)
      },
    }
    this.add(request)
  }
}

function fill(ofOne: number): ObservedSet {
  const set = new ObservedSet()
  for (let rate = 0; rate < ofOne; rate += 1) set.addFrom(ONE, rate)
  for (let rate = 0; rate < SLOTS - ofOne; rate += 1) set.addFrom(OTHER, rate)
  set.looks = 0
  return set
}

test('a full tunnel rejects requests without a look at each one in progress', () => {
  const set = fill(SLOTS / 2)
  for (let attempt = 0; attempt < 1_000; attempt += 1)
    for (const client of [ONE, OTHER]) assert.equal(set.makeRoom(client), false)
  assert.deepEqual([set.looks, set.evicted, set.size], [0, [], SLOTS])
})

test('a network takes the slots of the slowest requests of a larger one, until it has as many', () => {
  const set = fill(SLOTS / 2 + 3)
  assert.equal(set.makeRoom(ONE), false)
  while (set.makeRoom(OTHER)) set.addFrom(OTHER, 1_000)
  assert.deepEqual(
    set.evicted,
    [0, 1, 2].map((rate) => `${ONE} at ${rate}`),
  )
  assert.equal(set.size, SLOTS)
})
