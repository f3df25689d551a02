// What an edge acknowledges, and how long it may carry traffic.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createControlPlane, startTunnelReporter, startVerifier } from '../../../src/edge-sdk/index.ts'
import { AppliedChanges } from '../../../src/edge-sdk/keys/applied-changes.ts'
import { TrafficLease } from '../../../src/edge-sdk/tunnels/traffic-lease.ts'
import { createKey, revoke } from '../../../src/server/domain/keys/lifecycle.ts'
import { addEdge, serve } from '../../support/api/server.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { tunnelId } from '../../support/edges/open-tunnels.ts'
import { until } from '../../support/until.ts'

/** A verification of keys that the test ends. */
function setUpChanges() {
  const runs: PromiseWithResolvers<void>[] = []
  const changes = new AppliedChanges(() => {
    const run = Promise.withResolvers<void>()
    runs.push(run)
    return run.promise
  })
  const advanced: boolean[] = []
  changes.onAdvanced = (isUrgent) => advanced.push(isUrgent)
  return { changes, runs, advanced }
}

test('a change that is still being applied is not acknowledged, nor those after it', async () => {
  const { changes } = setUpChanges()
  assert.equal(changes.position, '0')
  changes.received('1-a')
  const releases = [changes.hold(), changes.hold()]
  changes.received('2-b')
  const later = changes.hold()
  changes.received('3-c')
  assert.deepEqual([changes.position, changes.has('1-a'), changes.has('2-b')], ['1-a', true, false])
  for (const release of releases) release()
  assert.deepEqual([changes.position, changes.has('2-b'), changes.has('3-c')], ['2-b', true, false])
  later()
  assert.equal(changes.position, '3-c')
})

test('after a reset nothing is acknowledged before keys were verified again, which waits for the next position', async () => {
  const { changes, runs, advanced } = setUpChanges()
  changes.received('7-a')
  changes.reset()
  assert.deepEqual([changes.position, runs.length], ['7-a', 0])
  // Its log was rolled back, so this is not the position 7 from before.
  changes.received('5-x')
  assert.deepEqual(
    [changes.position, changes.has('5-x'), changes.has('7-a'), runs.length],
    ['7-a', false, false, 1],
  )
  assert.equal(changes.latestId, '5-x')
  changes.received('6-y')
  assert.equal(changes.position, '7-a')
  runs[0]?.resolve()
  await until('it is acknowledged', () => changes.position === '6-y')
  assert.equal(advanced.at(-1), true)
})

test('a reset during a verification causes another one, and only then the position after it is acknowledged', async () => {
  const { changes, runs } = setUpChanges()
  changes.received('1-a')
  changes.verifyAgain()
  changes.received('2-b')
  changes.verifyAgain()
  changes.received('3-c')
  changes.reset()
  runs[0]?.resolve()
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual([runs.length, changes.position], [1, '2-b'])
  changes.received('9-d')
  assert.equal(runs.length, 2)
  assert.equal(changes.position, '2-b')
  runs[1]?.resolve()
  await until('it is acknowledged', () => changes.position === '9-d')
})

function setUpLease(t: Test) {
  const { changes } = setUpChanges()
  const events: string[] = []
  const lease = new TrafficLease({
    changes,
    onExpired: () => void events.push('expired'),
    onRenewed: () => void events.push('renewed'),
  })
  changes.onAdvanced = () => lease.onApplied()
  atEnd(t, () => lease.stop())
  return { changes, lease, events }
}

test('a lease counts from before the sync, and only when the changes before it are applied', async (t) => {
  const { changes, lease, events } = setUpLease(t)
  const sentAt = lease.now()
  lease.granted(sentAt, { seconds: 25, after: '2-b' })
  assert.equal(lease.isValid(), false)
  changes.received('1-a')
  assert.equal(lease.isValid(), false)
  changes.received('2-b')
  assert.equal(lease.isValid(), true)
  // As if the sync had been sent 25 seconds ago.
  lease.granted({ monotonic: sentAt.monotonic - 25_000, wall: sentAt.wall }, { seconds: 25, after: '2-b' })
  assert.equal(lease.isValid(), false)
  assert.deepEqual(events, ['renewed', 'expired'])
})

test('a lease ends by the wall clock, too, and at once for whoever asks first', (t) => {
  const { changes, lease, events } = setUpLease(t)
  changes.received('1-a')
  const now = lease.now()
  lease.granted({ ...now, wall: now.wall - 24_990 }, { seconds: 25, after: '1-a' })
  assert.equal(lease.isValid(), true)
  const endsAt = performance.now() + 30
  while (performance.now() < endsAt);
  assert.equal(lease.isValid(), false)
  assert.deepEqual(events, ['renewed', 'expired'])
})

test('another process can be told until when the edge may carry traffic', (t) => {
  const { changes, lease } = setUpLease(t)
  assert.equal(lease.until(), undefined)
  changes.received('1-a')
  const sentAt = lease.now()
  lease.granted(sentAt, { seconds: 25, after: '1-a' })
  assert.deepEqual(lease.until(), { monotonic: sentAt.monotonic + 25_000, wall: sentAt.wall + 25_000 })
  lease.granted({ ...sentAt, wall: sentAt.wall - 25_000 }, { seconds: 25, after: '1-a' })
  assert.equal(lease.until(), undefined)
  lease.granted(sentAt, { seconds: null, after: '1-a' })
  assert.equal(lease.until()?.monotonic, Number.POSITIVE_INFINITY)
})

test('many syncs while a change is missing do not delay the lease of the first one', (t) => {
  const { changes, lease } = setUpLease(t)
  changes.received('1-a')
  for (let sequence = 2; sequence < 100; sequence++)
    lease.granted(lease.now(), { seconds: 25, after: `${sequence}-a` })
  changes.received('2-a')
  assert.equal(lease.isValid(), true)
})

test('a change of a log that was rolled back renews nothing', (t) => {
  const { changes, lease } = setUpLease(t)
  for (let sequence = 1; sequence < 10; sequence++) changes.received(`${sequence}-a`)
  lease.granted(lease.now(), { seconds: 25, after: '5-b' })
  assert.equal(lease.isValid(), false)
})

test('without a limit, the lease does not end, until the control plane sets one', (t) => {
  const { changes, lease } = setUpLease(t)
  lease.granted(lease.now(), { seconds: null, after: '1-a' })
  assert.deepEqual([lease.isValid(), lease.isLimited], [true, false])
  lease.granted(lease.now(), { seconds: 25, after: '1-a' })
  assert.deepEqual([lease.isValid(), lease.isLimited], [false, true])
  changes.received('1-a')
  assert.equal(lease.isValid(), true)
})

test('an edge acknowledges the revocation of a key that it knows at once, after its program has closed what it has to', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const { id, token } = await addEdge(server)
  const controlPlane = createControlPlane({ url: server.url, credential: token })
  const closing = Promise.withResolvers<void>()
  let closed: string | undefined
  const verifier = startVerifier(controlPlane, {
    onRevoked(keyId) {
      closed = keyId
      return closing.promise
    },
  })
  atEnd(t, () => verifier.close())
  const reporter = startTunnelReporter(controlPlane, {
    version: 'test 1',
    verifier,
    onClose: () => undefined,
    onAccessRules: () => undefined,
    onLeaseExpired: () => undefined,
  })
  atEnd(t, reporter.stop)
  assert.equal(reporter.mayCarryUntil(), undefined)
  await until('it may carry traffic', () => reporter.mayCarry())
  const { monotonic = 0 } = reporter.mayCarryUntil() ?? {}
  assert.ok(monotonic > performance.now() && monotonic <= performance.now() + 25_000, `${monotonic}`)
  const key = await createKey(server.ctx)
  await verifier.verify(key.token)
  const tunnel = {
    ...{ id: tunnelId(), workspace: 'acme', name: 'app', type: 'http' as const, pool: false, keyId: key.id },
    url: 'https://app.acme.localhost',
    clientAddress: '192.0.2.7',
    openedAt: new Date().toISOString(),
  }
  assert.equal((await reporter.claim(tunnel, key.token)).granted, true)
  reporter.opened(tunnel, key.token, () => ({ requests: 0, bytesIn: 0, bytesOut: 0, streams: 0 }))
  const acknowledged = async () => {
    const [row] = await server.services.store.db
      .selectFrom('edge_sessions')
      .select(['acknowledged_sequence as sequence'])
      .where('edge_id', '=', id)
      .execute()
    return Number(row?.sequence)
  }
  let isDone = false
  const revoked = revoke(server.ctx, key.id).then(() => {
    isDone = true
  })
  await until('the program closes the tunnel', () => closed === key.id)
  const before = await acknowledged()
  reporter.syncNow()
  await new Promise((resolve) => setTimeout(resolve, 300))
  assert.deepEqual([isDone, await acknowledged()], [false, before])
  closing.resolve()
  await revoked
  assert.ok((await acknowledged()) > before)
  await reporter.stop()
  const [row] = await server.services.store.db
    .selectFrom('edge_sessions')
    .select(['acknowledged_sequence as sequence'])
    .where('edge_id', '=', id)
    .execute()
  assert.equal(row?.sequence, null)
})
