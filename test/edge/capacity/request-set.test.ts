// What a full tunnel does with a further request.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RequestSet } from '../../../src/edge/ingress/request-set.ts'

const SLOTS = 500
const [ONE, OTHER] = ['203.0.113.1', '203.0.113.2']

/** Counts how often the network of a request is read, and records which requests are evicted. */
class ObservedSet extends RequestSet {
  networkReads = 0
  readonly evicted: string[] = []

  constructor() {
    super(SLOTS, 'tunnelPosition')
  }

  addFrom(network: string, rate: number): void {
    const readNetwork = () => {
      this.networkReads += 1
      return network
    }
    const request = {
      tunnelPosition: -1,
      workspacePosition: -1,
      get network() {
        return readNetwork()
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

/** The other requests are of `OTHER`. */
function fill(countOfOne: number): ObservedSet {
  const set = new ObservedSet()
  for (let rate = 0; rate < countOfOne; rate += 1) set.addFrom(ONE, rate)
  for (let rate = 0; rate < SLOTS - countOfOne; rate += 1) set.addFrom(OTHER, rate)
  set.networkReads = 0
  return set
}

test('a full tunnel rejects a request without reading those in progress', () => {
  const set = fill(SLOTS / 2)
  for (let attempt = 0; attempt < 1_000; attempt += 1)
    for (const client of [ONE, OTHER]) assert.equal(set.makeRoom(client), false)
  assert.deepEqual([set.networkReads, set.evicted, set.size], [0, [], SLOTS])
})

test('a network displaces the slowest requests of a larger one, until both have equally many', () => {
  const set = fill(SLOTS / 2 + 3)
  assert.equal(set.makeRoom(ONE), false)
  while (set.makeRoom(OTHER)) set.addFrom(OTHER, 1_000)
  assert.deepEqual(
    set.evicted,
    [0, 1, 2].map((rate) => `${ONE} at ${rate}`),
  )
  assert.equal(set.size, SLOTS)
})
