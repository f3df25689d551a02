// After the response to a revocation no worker of an edge carries a byte for the key, whatever happens to the
// processes of the edge meanwhile.
import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { createKey } from '../../../src/server/domain/keys/lifecycle.ts'
import { addEdge, serve } from '../../support/api/server.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { fetchHost, openTunnel, startLocal, startTunnelEdge } from '../../support/edges/tunnels.ts'
import { startRelay } from '../../support/network/relay.ts'
import { freePort } from '../../support/processes/ports.ts'
import { until } from '../../support/until.ts'
import { startEcho, startVisits } from './carried.ts'
import { CONNECTIONS, collectLog, TWO_WORKERS, workersOfEdge } from './edge-workers.ts'

/** How long a revocation waits for an edge that is gone; see docs/revocation.md. */
const WAIT_MAX_MS = 25_300
/** A worker that does not respond is killed after ten pings. */
const KILLED_MS = 15_000

async function setUp(t: Test, edgeEnv: Record<string, string> = {}) {
  const tcpPort = await freePort()
  const server = await serve(t, { engine: 'sqlite', env: { ADIT_TCP_PORTS: `${tcpPort}-${tcpPort}` } })
  const local = await startLocal(t)
  const echo = await startEcho(t)
  const start = async (name: string, env: Record<string, string> = {}) => {
    const { token } = await addEdge(server, name)
    const relay = await startRelay(t, server.url)
    const edge = await startTunnelEdge(t, {
      env: { ...TWO_WORKERS, ADIT_URL: relay.url, ADIT_EDGE_KEY: token, ...env },
    })
    await edge.waitFor(/"worker listening"/, 'stderr')
    return { ...edge, relay, log: collectLog(edge) }
  }
  const edge = await start('one', edgeEnv)
  const open = async (name: string) => {
    const key = await createKey(server.ctx)
    const tunnel = await openTunnel(t, { edge, key: key.token, port: local.port, name, flags: ONE_EDGE })
    return { key, ...tunnel }
  }
  const openTcp = (key: string) =>
    openTunnel(t, { edge, key, port: echo, name: 'tcp', type: 'tcp', flags: ONE_EDGE })
  const revoke = async (id: string) => {
    const startedAt = performance.now()
    assert.equal((await server.call('DELETE', `/tokens/${id}`)).status, 200)
    return performance.now() - startedAt
  }
  return { server, edge, tcpPort, start, open, openTcp, revoke }
}

const ONE_EDGE = ['--edges', '1']

/** The distinct statuses of requests to all workers. */
async function statuses(edge: { port: number }, host: string): Promise<(number | string)[]> {
  const found = new Set<number | string>()
  for (let each = 0; each < CONNECTIONS; each += 1)
    found.add(
      await fetchHost(edge, host).then(
        ({ status }) => status,
        (error: NodeJS.ErrnoException) => error.code ?? 'error',
      ),
    )
  return [...found]
}

test('the response to a revocation comes when all workers have ended everything of the key, usually at once', async (t) => {
  const { edge, tcpPort, open, openTcp, revoke } = await setUp(t)
  const stays = await open('stays')
  for (let round = 0; round < 3; round++) {
    const { key, host } = await open(`app-${round}`)
    await openTcp(key.token)
    const visits = await startVisits(t, edge, host, tcpPort)
    const tookMs = await revoke(key.id)
    const before = visits.bytes()
    assert.deepEqual(await statuses(edge, host), [404])
    await visits.assertOver(before)
    t.diagnostic(`${Math.round(tookMs)} ms`)
    assert.ok(tookMs < 5_000, `${tookMs} ms`)
  }
  assert.deepEqual(await statuses(edge, stays.host), [200])
})

for (const [who, isStopped] of [
  ['the worker that has the client', (pid: number, serving: number) => pid === serving],
  ['a worker that forwards to it', (pid: number, serving: number) => pid !== serving],
] as const)
  test(`a revocation waits for ${who} when that is stopped, until it is killed`, async (t) => {
    const { edge, open, revoke } = await setUp(t)
    const { key, host } = await open('app')
    await until('the opening is logged', () => edge.log.lines('tunnel opened').length === 1)
    const [{ pid: serving } = assert.fail()] = edge.log.lines('tunnel opened')
    const visits = await startVisits(t, edge, host)
    const stopped = workersOfEdge(edge).find((pid) => isStopped(pid, serving)) ?? assert.fail()
    process.kill(stopped, 'SIGSTOP')
    const tookMs = await revoke(key.id)
    const before = visits.bytes()
    t.diagnostic(`${Math.round(tookMs)} ms`)
    assert.ok(!workersOfEdge(edge).includes(stopped), 'it may still carry something')
    assert.ok(tookMs < KILLED_MS, `${tookMs} ms`)
    await visits.assertOver(before)
    await until('two workers run', () => workersOfEdge(edge).length === 2)
    await until('no worker has the tunnel', async () => (await statuses(edge, host)).join() === '404')
  })

/**
 * Kills the primary of stopped workers, revokes the key, and lets the workers continue. Returns the bytes
 * that visits got after the response to the revocation, of those that got any.
 */
async function continueAfterRevocation(
  t: Test,
  stop: (workers: number[], clients: ChildProcess[], bytes: () => number[]) => Promise<void>,
): Promise<number[]> {
  const { edge, tcpPort, open, openTcp, revoke } = await setUp(t)
  const { key, host, child: client } = await open('app')
  const { child: tcpClient } = await openTcp(key.token)
  const visits = await startVisits(t, edge, host, tcpPort)
  const workers = workersOfEdge(edge)
  atEnd(t, () => {
    for (const pid of workers) kill(pid, 'SIGKILL')
  })
  await stop(workers, [client, tcpClient], visits.bytes)
  edge.child.kill('SIGKILL')
  await revoke(key.id)
  const before = visits.bytes()
  for (const pid of workers) process.kill(pid, 'SIGCONT')
  await until('all is closed', () => visits.closed() === before.length)
  await until('the workers have exited', () => workers.every((pid) => !kill(pid, 0)))
  return visits
    .bytes()
    .map((bytes, index) => bytes - (before[index] as number))
    .filter((after) => after > 0)
}

test('workers that were stopped when their primary was killed pass on no byte when they continue', async (t) => {
  const after = await continueAfterRevocation(t, async (workers, clients, bytes) => {
    // While no worker is writing to a visitor.
    for (const client of clients) client.kill('SIGSTOP')
    let last = 0
    await until('nothing flows', async () => {
      const previous = last
      await setTimeout(200)
      last = sum(bytes())
      return last === previous
    })
    for (const pid of workers) process.kill(pid, 'SIGSTOP')
    for (const client of clients) client.kill('SIGCONT')
  })
  assert.deepEqual(after, [])
})

test('a worker that was stopped while it was writing finishes that write, and passes on nothing else', async (t) => {
  const after = await continueAfterRevocation(t, async (workers) => {
    for (const pid of workers) process.kill(pid, 'SIGSTOP')
  })
  t.diagnostic(`visits got ${after.join(', ') || 'no'} bytes`)
  assert.ok(after.length <= 2, after.join(', '))
  assert.ok(
    after.every((bytes) => bytes <= 64 * 1024),
    after.join(', '),
  )
})

const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0)

/** Whether the process exists. */
function kill(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}

test('workers whose primary is stopped carry nothing when their lease ends, and continue with it', async (t) => {
  const { edge, tcpPort, open, openTcp, revoke } = await setUp(t)
  const stays = await open('stays')
  const { key, host } = await open('app')
  await openTcp(key.token)
  const visits = await startVisits(t, edge, host, tcpPort)
  edge.child.kill('SIGSTOP')
  const startedAt = performance.now()
  const revoked = revoke(key.id)
  await until('no worker carries anything', async () => (await statuses(edge, host)).join() === '503', 30_000)
  assert.deepEqual(await statuses(edge, stays.host), [503])
  t.diagnostic(`cut off after ${Math.round(performance.now() - startedAt)} ms`)
  await until('all is closed', () => visits.closed() === visits.bytes().length)
  const tookMs = await revoked
  assert.ok(tookMs <= WAIT_MAX_MS + 1_000, `${tookMs} ms`)
  const before = visits.bytes()
  edge.child.kill('SIGCONT')
  const seen = new Set<number | string>()
  await until('traffic is carried again', async () => {
    for (const status of await statuses(edge, host)) seen.add(status)
    return (await statuses(edge, stays.host)).join() === '200'
  })
  assert.equal(seen.has(200), false, 'the missed revocation was not applied first')
  await visits.assertOver(before, 0)
  assert.deepEqual(await statuses(edge, host), [404])
})

test('the response to a revocation comes when another edge passes on nothing of the key, whichever worker it is connected to', async (t) => {
  const listening = async () => ({ ADIT_EDGE_PEER_PORT: String(await freePort()) })
  const { start, open, revoke } = await setUp(t, await listening())
  const entry = await start('entry', await listening())
  for (let round = 0; round < 3; round++) {
    const { key, host } = await open(`app-${round}`)
    await until('it is forwarded', async () => (await statuses(entry, host)).join() === '200')
    const visits = await startVisits(t, entry, host)
    const tookMs = await revoke(key.id)
    const before = visits.bytes()
    assert.deepEqual(await statuses(entry, host), [404])
    t.diagnostic(`${Math.round(tookMs)} ms`)
    await visits.assertOver(before)
  }
})

test('workers that are being replaced end everything of the key, too', async (t) => {
  const { edge, open, revoke } = await setUp(t)
  for (let round = 0; round < 3; round++) {
    const { key, host } = await open(`app-${round}`)
    const visits = await startVisits(t, edge, host)
    edge.child.kill('SIGHUP')
    const listening = new RegExp(`("worker listening".*){${2 * round + 2 + (round % 2)}}`, 's')
    await edge.waitFor(listening, 'stderr')
    const tookMs = await revoke(key.id)
    const before = visits.bytes()
    assert.deepEqual(await statuses(edge, host), [404])
    t.diagnostic(`${Math.round(tookMs)} ms`)
    await visits.assertOver(before)
    await edge.waitFor(new RegExp(`("workers restarted".*){${round + 1}}`, 's'), 'stderr')
  }
})

test('an edge that is cut off from the control plane carries nothing at any worker when its lease has ended', async (t) => {
  const { server, edge, tcpPort, open, openTcp, revoke } = await setUp(t)
  server.services.propagation.edgeLeaseMs = 9_000
  const stays = await open('stays')
  const { key, host } = await open('app')
  await openTcp(key.token)
  const visits = await startVisits(t, edge, host, tcpPort)
  edge.relay.cut()
  const revoked = revoke(key.id)
  await until(
    'the lease has ended',
    async () => (await statuses(edge, stays.host)).join() === '503',
    WAIT_MAX_MS + 5_000,
  )
  await until('all is closed', () => visits.closed() === visits.bytes().length)
  await revoked
  edge.relay.mend()
  const seen = new Set<number | string>()
  await until('traffic is carried again', async () => {
    for (const status of await statuses(edge, host)) seen.add(status)
    return (await statuses(edge, stays.host)).join() === '200'
  })
  assert.equal(seen.has(200), false, 'the missed revocation was not applied first')
  assert.deepEqual(await statuses(edge, host), [404])
})
