// The tunnel reporter of the edge SDK, with a real control plane behind a network that fails.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type ClaimedTunnel,
  type ClaimResult,
  ControlPlaneError,
  createControlPlane,
  type SyncResult,
  startTunnelReporter,
  startVerifier,
  type TunnelReporterOptions,
} from '../../src/edge-sdk/index.ts'
import { addEdge, serve } from '../support/api/server.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import { type Engine, engines } from '../support/databases/create.ts'
import { expireLease, storedTunnels, tunnelId } from '../support/edges/open-tunnels.ts'
import { startRelay } from '../support/network/relay.ts'
import { createRandom } from '../support/random.ts'
import { until } from '../support/until.ts'

/** After an outage, the reporter waits for up to 10 seconds. */
const RECOVERY_MS = 20_000
const OPTIONS = {
  version: 'test 1',
  verifier: { grant: async () => 'grant' },
  onClose: () => undefined,
  onAccessRules: () => undefined,
}
const SYNCED: SyncResult = {
  resync: false,
  replaced: false,
  nextSyncInS: 5,
  lease: { seconds: 25, after: '1-a' },
  close: [],
  grantRequired: [],
  names: [],
}
const NO_USAGE = () => ({ requests: 0, bytesIn: 0, bytesOut: 0, streams: 0 })

const createTunnel = (workspace: string, name: string, keyId = 'tok_1'): ClaimedTunnel => ({
  id: tunnelId(),
  workspace,
  name,
  type: 'http',
  pool: false,
  url: `https://${name}.${workspace}.localhost`,
  keyId,
  clientAddress: '192.0.2.7',
  openedAt: new Date().toISOString(),
})

async function setUp(t: Test, engine: Engine = 'sqlite') {
  const server = await serve(t, { engine })
  const edge = await addEdge(server)
  const relay = await startRelay(t, server.url)
  const controlPlane = createControlPlane({ url: relay.url, credential: edge.token })
  const verifier = startVerifier(controlPlane)
  atEnd(t, () => verifier.close())
  const notices: string[] = []
  const closed: string[] = []
  const start = (options: Partial<TunnelReporterOptions> = {}) => {
    const reporter = startTunnelReporter(controlPlane, {
      version: 'test 1',
      verifier,
      onClose: ({ id, reason }) => void closed.push(`${id} ${reason}`),
      onAccessRules: () => undefined,
      onNotice: (line) => void notices.push(line),
      ...options,
    })
    atEnd(t, reporter.stop)
    const { token } = server.key
    return {
      ...reporter,
      claim: (tunnel: ClaimedTunnel) => reporter.claim(tunnel, token),
      opened: (tunnel: ClaimedTunnel, usage: typeof NO_USAGE) => reporter.opened(tunnel, token, usage),
    }
  }
  const tunnel = (name: string) => createTunnel('acme', name, server.key.id)
  const stored = () => storedTunnels(server, edge.id)
  return { server, edge, relay, controlPlane, verifier, notices, closed, start, tunnel, stored }
}

for (const engine of engines)
  test(`${engine}: through a network that fails again and again, the list becomes exact`, async (t) => {
    const { relay, start, tunnel, stored } = await setUp(t, engine)
    const seed = process.env.REPORTER_SEED ?? String(Date.now())
    t.diagnostic(`REPORTER_SEED=${seed}`)
    const random = createRandom(seed)
    const reporter = start()
    const open = new Set<string>()
    const act = async (index: number) => {
      const opened = tunnel(`app-${index}`)
      const claim = await reporter.claim(opened).catch(() => undefined)
      if (!claim?.granted) return
      reporter.opened(opened, NO_USAGE)
      open.add(opened.id)
      if (!random.chance(0.5)) return
      open.delete(opened.id)
      reporter.closed(opened.id)
    }
    for (let round = 0; round < 10; round++) {
      const acts = Array.from({ length: 20 }, (_, index) => act(20 * round + index))
      reporter.syncNow()
      await new Promise((resolve) => setImmediate(resolve))
      const fault = random.pick(['cut', 'delay', 'none'] as const)
      if (fault === 'cut') relay.cut()
      if (fault === 'delay') relay.delay(() => random.between(0, 50))
      await Promise.all(acts)
      relay.mend()
    }
    reporter.syncNow()
    await until(
      'the list is exact',
      async () => JSON.stringify(await stored()) === JSON.stringify([...open].sort()),
      RECOVERY_MS,
    )
  })

test('a claim whose response is lost does not occupy the name', async (t) => {
  const { server, verifier, relay, start, tunnel, stored } = await setUp(t)
  const reporter = start()
  await verifier.verify(server.key.token)
  relay.hold()
  const claim = reporter.claim(tunnel('app'))
  claim.catch(() => undefined)
  await until('the control plane has granted it', async () => (await stored()).length === 1)
  relay.cut()
  relay.release()
  await assert.rejects(claim, ControlPlaneError)
  relay.mend()
  await until('the name is free', async () => (await stored()).length === 0, RECOVERY_MS)
})

test('after data loss of the control plane, the reporter sends everything again', async (t) => {
  const { server, start, tunnel, stored } = await setUp(t)
  const reporter = start()
  const opened = tunnel('app')
  assert.equal((await reporter.claim(opened)).granted, true)
  reporter.opened(opened, NO_USAGE)
  for (const table of ['open_tunnels', 'edge_sessions'] as const)
    await server.services.store.transaction((db) => db.deleteFrom(table).execute())
  reporter.syncNow()
  await until('it is there again', async () => (await stored()).length === 1, RECOVERY_MS)
})

test('tunnels are listed again after their lease has expired', async (t) => {
  const { server, edge, start, tunnel, stored } = await setUp(t)
  const reporter = start()
  const opened = tunnel('app')
  await reporter.claim(opened)
  reporter.opened(opened, NO_USAGE)
  await expireLease(server, edge.id)
  reporter.syncNow()
  const leaseUntil = async () => {
    const [row] = await server.services.store.db.selectFrom('edge_sessions').select('lease_until').execute()
    return Number(row?.lease_until)
  }
  await until('the lease is renewed', async () => (await leaseUntil()) > 0)
  assert.deepEqual(await stored(), [opened.id])
})

test('a second process with the same credential takes over, and the first one logs it', async (t) => {
  const { notices, start, tunnel, stored } = await setUp(t)
  const first = start()
  const early = tunnel('early')
  await first.claim(early)
  first.opened(early, NO_USAGE)
  // Sessions sort by their start in milliseconds.
  const startedAt = Date.now()
  await until('a later millisecond', () => Date.now() > startedAt)
  const second = start()
  await until('the list is that of the second', async () => (await stored()).length === 0)
  first.syncNow()
  await until('noticed', () => notices.some((line) => line.startsWith('Another edge uses the credential')))
  const rejected = await first.claim(tunnel('late'))
  assert.equal(rejected.granted, false)
  assert.equal((await second.claim(tunnel('app'))).granted, true)
})

test('an outage and its end are logged once each', async (t) => {
  const { relay, notices, start } = await setUp(t)
  const reporter = start()
  relay.cut()
  reporter.syncNow()
  await until('noticed', () => notices.length > 0)
  relay.mend()
  await until('the end is noticed', () => notices.length > 1, RECOVERY_MS)
  assert.match(notices[0] ?? '', /^Failed to report open tunnels, retrying: http:\S+ cannot be reached/)
  assert.equal(notices[1], 'Reporting open tunnels again.')
})

test('the URL of a tunnel is the one it was opened with, and not the one it was claimed with', async (t) => {
  const { server, start, tunnel } = await setUp(t)
  const reporter = start()
  const claimed = tunnel('app')
  await reporter.claim(claimed)
  reporter.syncNow()
  const stored = async () => {
    const [row] = await server.services.store.db.selectFrom('open_tunnels').select('url').execute()
    return row?.url
  }
  assert.equal(await stored(), claimed.url)
  const url = `${claimed.url}:20001`
  reporter.opened({ ...claimed, url }, NO_USAGE)
  reporter.syncNow()
  await until('the URL is updated', async () => (await stored()) === url)
})

test('syncs are a second apart, also if the control plane asks for more', async (t) => {
  const times: number[] = []
  const reporter = startTunnelReporter(
    {
      claimTunnels: async () => [],
      syncTunnels: async () => {
        times.push(performance.now())
        return { ...SYNCED, nextSyncInS: -1 }
      },
    },
    OPTIONS,
  )
  atEnd(t, reporter.stop)
  await until('two syncs', () => times.length >= 2)
  const [first = 0, second = 0] = times
  // The jitter is a tenth of the interval.
  assert.ok(second - first >= 890, `${second - first} ms`)
})

test('an idle edge sends one sync per interval', async (t) => {
  const measureGaps = async () => {
    const times: number[] = []
    const syncTunnels = async () => {
      times.push(performance.now())
      return { ...SYNCED, nextSyncInS: 1 }
    }
    const reporter = startTunnelReporter({ claimTunnels: async () => [], syncTunnels }, OPTIONS)
    atEnd(t, reporter.stop)
    await until('four syncs', () => times.length >= 4)
    return times.slice(1).map((time, index) => time - (times[index] as number))
  }
  const gaps = (await Promise.all(Array.from({ length: 8 }, measureGaps))).flat()
  // The jitter is a tenth of the interval.
  assert.deepEqual(
    gaps.filter((gap) => gap < 890),
    [],
  )
})

test('no sync is earlier than Retry-After', async (t) => {
  const measureWait = async () => {
    const times: number[] = []
    const controlPlane = {
      syncTunnels: async () => {
        times.push(performance.now())
        throw new ControlPlaneError('Busy.', 503, undefined, 1)
      },
      claimTunnels: async () => assert.fail('no tunnel is opened'),
    }
    const reporter = startTunnelReporter(controlPlane, OPTIONS)
    atEnd(t, reporter.stop)
    await until('a second sync', () => times.length > 1)
    return (times[1] as number) - (times[0] as number)
  }
  const shortest = Math.min(...(await Promise.all(Array.from({ length: 8 }, measureWait))))
  assert.ok(shortest > 990, `${shortest} ms`)
})

test('if the last sync fails at a stop, it is logged and not retried', async (t) => {
  const { relay, notices, start, tunnel } = await setUp(t)
  const reporter = start()
  await reporter.claim(tunnel('app'))
  relay.cut()
  await reporter.stop()
  assert.match(notices.at(-1) ?? '', /^Failed to report the tunnels as closed: http:\S+ cannot be reached/)
})

test('stop reports all tunnels as closed', async (t) => {
  const { start, tunnel, stored } = await setUp(t)
  const reporter = start()
  const tunnels = ['a', 'b', 'c'].map(tunnel)
  for (const each of tunnels) {
    await reporter.claim(each)
    reporter.opened(each, NO_USAGE)
  }
  assert.equal((await stored()).length, 3)
  await reporter.stop()
  assert.deepEqual(await stored(), [])
})

/** A control plane whose claims a test decides. */
function startWaiting(t: Test) {
  const sent: { names: string[]; resolve: () => void; reject: (error: Error) => void }[] = []
  const reporter = startTunnelReporter(
    {
      claimTunnels({ tunnels }) {
        const { promise, resolve, reject } = Promise.withResolvers<ClaimResult[]>()
        const granted = tunnels.map(() => ({ granted: true as const, access: null }))
        sent.push({ names: tunnels.map(({ name }) => name), resolve: () => resolve(granted), reject })
        return promise
      },
      syncTunnels: async () => SYNCED,
    },
    OPTIONS,
  )
  atEnd(t, reporter.stop)
  return { reporter, sent }
}

test('one request with claims is sent at a time, and workspaces take turns in it', async (t) => {
  const { reporter, sent } = startWaiting(t)
  const claim = (workspace: string, name: string) => reporter.claim(createTunnel(workspace, name), 'key')
  const first = claim('acme', 'first')
  await until('the first claim', () => sent.length === 1)
  const waiting = Array.from({ length: 400 }, (_, index) => claim('acme', `acme-${index}`))
  waiting.push(claim('other', 'other-0'), claim('other', 'other-1'))
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(sent.length, 1)
  sent[0]?.resolve()
  await until('the second claim', () => sent.length === 2)
  assert.equal(sent[1]?.names.length, 250)
  assert.deepEqual(sent[1]?.names.slice(0, 5), ['acme-0', 'other-0', 'acme-1', 'other-1', 'acme-2'])
  sent[1]?.resolve()
  await until('the third claim', () => sent.length === 3)
  assert.equal(sent[2]?.names.length, 152)
  sent[2]?.resolve()
  assert.ok((await Promise.all([first, ...waiting])).every(({ granted }) => granted))
})

test('a request with claims that fails rejects only these claims, and the next one is sent', async (t) => {
  const { reporter, sent } = startWaiting(t)
  const first = reporter.claim(createTunnel('acme', 'first'), 'key')
  await until('the first claim', () => sent.length === 1)
  const second = reporter.claim(createTunnel('acme', 'second'), 'key')
  sent[0]?.reject(new ControlPlaneError('It failed.', 500))
  await assert.rejects(first, { message: 'It failed.' })
  await until('the second claim', () => sent.length === 2)
  sent[1]?.resolve()
  assert.equal((await second).granted, true)
})

test('an invalid tunnel does not affect the others of its request', async (t) => {
  const { reporter, sent } = startWaiting(t)
  const claims = ['invalid', 'valid'].map((name) => reporter.claim(createTunnel('acme', name), 'key'))
  const invalid = new ControlPlaneError('It is invalid.', 400)
  await until('both are claimed', () => sent.length === 1)
  assert.deepEqual(sent[0]?.names, ['invalid', 'valid'])
  sent[0]?.reject(invalid)
  await until('the first is claimed alone', () => sent.length === 2)
  sent[1]?.reject(invalid)
  await assert.rejects(claims[0] as Promise<unknown>, invalid)
  await until('the second is claimed alone', () => sent.length === 3)
  sent[2]?.resolve()
  assert.equal((await claims[1])?.granted, true)
})

test('if the control plane does not respond, all waiting claims fail', async (t) => {
  const { reporter, sent } = startWaiting(t)
  const first = reporter.claim(createTunnel('acme', 'first'), 'key')
  await until('the first claim', () => sent.length === 1)
  const second = reporter.claim(createTunnel('other', 'second'), 'key')
  second.catch(() => undefined)
  // The second has its grant, and waits.
  await new Promise((resolve) => setImmediate(resolve))
  sent[0]?.reject(new ControlPlaneError('No response.'))
  for (const claim of [first, second]) await assert.rejects(claim, { message: 'No response.' })
  assert.equal(sent.length, 1)
})

test('at most 1,000 names of a workspace wait, and others are not affected', async (t) => {
  const { reporter, sent } = startWaiting(t)
  const claim = (workspace: string, name: string) => reporter.claim(createTunnel(workspace, name), 'key')
  const claims = [claim('acme', 'first')]
  await until('the first claim', () => sent.length === 1)
  for (let index = 0; index < 1_000; index++) claims.push(claim('acme', `app-${index}`))
  await new Promise((resolve) => setImmediate(resolve))
  await assert.rejects(claim('acme', 'another'), {
    name: 'ControlPlaneError',
    status: 429,
    message: 'Too many names are being claimed. Retry shortly.',
  })
  claims.push(claim('other', 'app'))
  for (let index = 0; index < 6; index++) {
    await until('the next claim', () => sent.length > index)
    sent[index]?.resolve()
    if (sent.reduce((sum, { names }) => sum + names.length, 0) === claims.length) break
  }
  assert.ok((await Promise.all(claims)).every(({ granted }) => granted))
})
