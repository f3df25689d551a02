// When an edge counts its open tunnels: only under its lease, and when it knows which ones others count.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SyncResult } from '../../../src/edge-sdk/index.ts'
import { startTunnelReporter } from '../../../src/edge-sdk/index.ts'
import { AppliedChanges } from '../../../src/edge-sdk/keys/applied-changes.ts'
import { createUsageCounters } from '../../../src/edge-sdk/usage/counters.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { until } from '../../support/until.ts'

const NAME: SyncResult['names'][number] = { workspace: 'acme', name: 'app', access: null, counts: false }
const LEASE_S = 2

/** A reporter whose control plane grants leases of two seconds, and responds with what the test says. */
function setUp(t: Test) {
  const changes = new AppliedChanges(async () => {})
  changes.received('1-a')
  /** The names in the responses to the next syncs. */
  const names: SyncResult['names'][] = []
  const state = { isUp: true, syncs: 0, hasExpired: false }
  const counted: boolean[] = []
  const reporter = startTunnelReporter(
    {
      claimTunnels: async () => [],
      async syncTunnels() {
        if (!state.isUp) throw new Error('cut off')
        state.syncs += 1
        return {
          ...{ resync: false, replaced: false, nextSyncInS: 1, close: [], grantRequired: [] },
          lease: { seconds: LEASE_S, after: '1-a' },
          names: names.shift() ?? [],
        }
      },
    },
    {
      version: 'test 1',
      verifier: { grant: async () => 'grant', changes },
      onClose: () => undefined,
      onAccessRules: () => void counted.push(reporter.mayCount()),
      onLeaseExpired() {
        state.hasExpired = true
      },
    },
  )
  atEnd(t, reporter.stop)
  return { reporter, names, state, counted }
}

test('an edge counts from its first lease on, and not after it has expired', async (t) => {
  const { reporter, state } = setUp(t)
  assert.equal(reporter.mayCount(), false)
  await until('it has a lease', () => reporter.mayCount())
  state.isUp = false
  await until('the lease expires', () => state.hasExpired)
  assert.equal(reporter.mayCount(), false)
  state.isUp = true
  await until('it has a lease again', () => reporter.mayCount())
})

test('an edge that was cut off counts only when it knows all names that others count', async (t) => {
  const { reporter, names, state, counted } = setUp(t)
  await until('it has a lease', () => reporter.mayCount())
  state.isUp = false
  await until('the lease expires', () => state.hasExpired)
  names.push([NAME], [{ ...NAME, name: 'other' }])
  const { syncs } = state
  state.isUp = true
  await until('it counts', () => reporter.mayCount())
  assert.deepEqual(counted, [false, false])
  assert.equal(state.syncs - syncs, 3)
})

test('tunnels that are open while an edge may not count are no part of the peak', () => {
  let mayCount = true
  let now = Date.UTC(2026, 2, 1)
  const counters = createUsageCounters({
    run: 'run',
    clock: () => now,
    itemsMax: 100,
    mayCount: () => mayCount,
  })
  const minutes = () =>
    counters.unreported().flatMap(({ report }) => (report.tunnels ?? []).map(({ open }) => open))
  counters.opened('acme')
  assert.deepEqual(minutes(), [1])
  mayCount = false
  now += 60_000
  counters.tick()
  counters.opened('acme')
  counters.tick()
  assert.deepEqual(minutes(), [1])
  mayCount = true
  counters.tick()
  assert.deepEqual(minutes(), [1, 2])
})
