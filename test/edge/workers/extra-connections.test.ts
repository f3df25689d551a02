// Extra connections of a tunnel client to an edge with several workers: when they are asked for, accepted
// and closed, and how they count.
import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { ForwardedRate, startUnusedCheck } from '../../../src/edge/tunnels/extra-connections.ts'
import { OpenNames } from '../../../src/edge/workers/open-names.ts'
import { openRawTunnel, startStandaloneEdge } from '../../support/edges/standalone-edge.ts'
import { fetchHost } from '../../support/edges/tunnels.ts'
import { until } from '../../support/until.ts'
import { CONNECTIONS, collectLog, startStandaloneWorkers } from './edge-workers.ts'

const SESSION = 's'.repeat(32)

test('an extra connection is rejected by a worker that has one, and accepted by another', async (t) => {
  const { edge, key } = await startStandaloneWorkers(t)
  const log = collectLog(edge)
  const request = { name: 'app', session: SESSION }
  const first = await openRawTunnel(edge, key, request)
  const results = []
  while (results.length < CONNECTIONS)
    results.push(
      await openRawTunnel(edge, key, { ...request, extra: true }).then(
        () => 'opened',
        ({ message }: Error) => message,
      ),
    )
  assert.equal(results.filter((result) => result === 'opened').length, 1)
  for (const result of results)
    if (result !== 'opened')
      assert.match(result, /this worker of the edge has a connection of the tunnel already/)
  await until('both are logged', () => log.lines('tunnel opened').length === 2)
  first.close()
})

test('an extra connection makes room for a first one at the same worker, and is accepted beside one that drains', async (t) => {
  const { edge, keys } = await startStandaloneEdge(t, ['acme'])
  const key = keys[0] as string
  const request = { name: 'app', session: SESSION }
  const extra = await openRawTunnel(edge, key, { ...request, extra: true })
  const first = await openRawTunnel(edge, key, request)
  await until('GoAway', () => extra.session.isGoingAway)
  extra.session.goAway()
  await until('it is closed', () => extra.session.isClosed)
  const response = fetchHost(edge, first.host)
  await until('a request is in progress', () => first.streams().length > 0)
  first.session.goAway()
  // The edge has read what was sent before the ping.
  await first.session.ping()
  const second = await openRawTunnel(edge, key, { ...request, extra: true })
  second.respond('HTTP/1.1 204 No Content\r\n\r\n')
  assert.equal((await fetchHost(edge, first.host)).status, 204)
  first.close()
  assert.equal((await response).status, 204)
})

test('the edge asks for another connection at 100 forwarded requests a second, and less and less often', () => {
  const asked: number[] = []
  let now = 0
  const rate = new ForwardedRate(() => asked.push(now))
  const forward = (count: number, stepMs: number) => {
    for (let index = 0; index < count; index += 1, now += stepMs) rate.onRequest(now)
  }
  forward(500, 11)
  assert.deepEqual(asked, [])
  now = 10_000
  forward(99, 1)
  assert.deepEqual(asked, [])
  forward(29_901, 1)
  const seconds = asked.map((at) => Math.floor(at / 1_000))
  assert.equal(asked[0], 10_099)
  assert.deepEqual(seconds, [10, 12, 16, 24])
  now += 60_000
  const from = asked.length
  forward(3_000, 1)
  assert.equal(asked.length - from, 2)
})

test('an extra connection is closed after a minute without requests', () => {
  mock.timers.enable({ apis: ['setInterval'] })
  let closings = 0
  const client = {
    totals: { requests: 0, bytesIn: 0, bytesOut: 0 },
    active: 0,
    goAway() {
      closings += 1
    },
  }
  const check = startUnusedCheck(client)
  client.totals.requests += 1
  mock.timers.tick(60_000)
  assert.equal(closings, 0)
  client.active = 1
  mock.timers.tick(60_000)
  assert.equal(closings, 0)
  client.active = 0
  mock.timers.tick(60_000)
  assert.equal(closings, 1)
  clearInterval(check)
  mock.timers.reset()
})

test('a client that is connected to several workers counts once for the limit of a workspace', () => {
  const names = new OpenNames(() => {})
  const connection = (name: string, worker: number, number = 1) => ({
    id: `tun_${name}_${worker}_${number}`,
    name,
    type: 'http' as const,
    pool: false,
    url: `http://${name}.acme.tunnels.test`,
    openedAt: '2026-01-01T00:00:00.000Z',
    workspace: 'acme',
    keyId: 'key_1',
    clientAddress: '192.0.2.1',
    session: name,
  })
  const claim = (name: string, worker: number, number?: number) =>
    names.claim(connection(name, worker, number), String(worker), 'key')?.reason
  for (let index = 0; index < 500; index += 1)
    for (const worker of [1, 2]) assert.equal(claim(`app-${index}`, worker), undefined)
  assert.equal(claim('one-more', 1), 'limit_reached')
  assert.equal(claim('app-1', 1, 2), 'limit_reached')
  names.remove('tun_app-0_1_1')
  assert.equal(claim('one-more', 1), 'limit_reached')
  names.remove('tun_app-0_2_1')
  assert.equal(claim('one-more', 1), undefined)
})
