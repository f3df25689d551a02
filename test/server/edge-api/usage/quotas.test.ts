// Quotas of a workspace at the control plane: levels by reported usage, tunnels, keys, and what edges are
// told.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createControlPlane } from '../../../../src/edge-sdk/index.ts'
import { createKey } from '../../../../src/server/domain/keys/lifecycle.ts'
import { readQuotasBySlug, setQuotas } from '../../../../src/server/domain/workspaces/quotas.ts'
import {
  addEdge,
  addNode,
  operator,
  serve,
  serveWithEdge,
  type TestServer,
} from '../../../support/api/server.ts'
import { today, counter as usageCounter } from '../../../support/api/usage.ts'
import { atEnd, type Test } from '../../../support/cleanup.ts'
import { engines } from '../../../support/databases/create.ts'
import { readRows } from '../../../support/databases/rows.ts'
import { callFrp, postJson } from '../../../support/edges/frp-payloads.ts'
import { addTunnelEdge, tunnelOf } from '../../../support/edges/open-tunnels.ts'
import { until } from '../../../support/until.ts'

const counter = (bytesIn: number, more: object = {}) =>
  usageCounter({ day: today(), requests: 1, bytesIn, ...more })

/** The quotas that the stream of an edge has sent, by their level. */
async function followQuotas(t: Test, { url }: { url: string }, token: string) {
  const gone = new AbortController()
  atEnd(t, () => gone.abort())
  const levels: (string | undefined)[] = []
  const events = await createControlPlane({ url, credential: token }).keyChanges(undefined, gone.signal)
  const isOpen = Promise.withResolvers<void>()
  void (async () => {
    for await (const { id, event, data } of events) {
      if (id !== undefined) isOpen.resolve()
      if (event === 'quota-changed') levels.push(JSON.parse(data ?? '').quota.level)
    }
  })().catch(() => {})
  await isOpen.promise
  return levels
}

const levelAt = async (edge: Awaited<ReturnType<typeof addEdge>>, server: TestServer) =>
  (await edge.verify(server.key.token)).json.workspace.quota?.level

for (const engine of engines) {
  test(`${engine}: edges at every node are told when usage is near a quota, reaches it, and is below it again`, async (t) => {
    const server = await serve(t, { engine, env: { ADIT_BYTES_PER_MONTH: '1000' } })
    const node = await addNode(t, server)
    const edge = await addEdge(server)
    const levels = await followQuotas(t, node, edge.token)
    const first = await edge.verify(server.key.token)
    assert.deepEqual(first.json.workspace.quota, { revision: 0, reportBytes: 5 })
    await edge.report({ epoch: 'e-1', counters: [counter(799)] })
    await edge.report({ epoch: 'e-2', counters: [counter(1)] })
    await until('80 %', () => levels.includes('near'))
    assert.deepEqual(levels, ['near'])
    await edge.report({ epoch: 'e-1', counters: [counter(998)] })
    await edge.report({ epoch: 'e-1', counters: [counter(999)] })
    await until('100 %', () => levels.includes('reached'))
    const { quota } = (await edge.verify(server.key.token)).json.workspace
    const now = new Date()
    const renews = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1)).toISOString()
    assert.deepEqual(quota, { revision: 2, level: 'reached', until: renews, reportBytes: 5 })

    await setQuotas(server.services, operator, 'acme', { bytes: 2_000 })
    assert.equal(await levelAt(edge, server), undefined)
    await until('a raised quota', () => levels.length === 3)
    await setQuotas(server.services, operator, 'acme', { bytes: 'default' })
    assert.equal(await levelAt(edge, server), 'reached')
    await setQuotas(server.services, operator, 'acme', { bytes: 'none' })
    assert.equal(await levelAt(edge, server), undefined)
    assert.deepEqual((await edge.verify(server.key.token)).json.workspace.quota, { revision: 5 })
    await until('all changes', () => levels.length === 5)
    assert.deepEqual(levels, ['near', 'reached', undefined, 'reached', undefined])
    const audit = await readRows(server.services, 'audit_log', { action: 'workspace.quota-changed' }, 'id')
    assert.deepEqual(
      audit.map(({ changes }) => JSON.parse(changes ?? '')),
      [{ bytes: ['default', 2_000] }, { bytes: [2_000, 'default'] }, { bytes: ['default', 'none'] }],
    )
  })

  test(`${engine}: usage of earlier months does not count, and requests have a quota of their own`, async (t) => {
    const { server, edge } = await serveWithEdge(t, { engine, env: { ADIT_REQUESTS_PER_MONTH: '10' } })
    const lastMonth = new Date()
    lastMonth.setUTCDate(0)
    const earlier = lastMonth.toISOString().slice(0, 10)
    await edge.report({
      epoch: 'e-1',
      counters: [counter(0, { day: earlier, requests: 500 }), counter(5_000, { requests: 9 })],
    })
    await until('80 %', async () => (await levelAt(edge, server)) === 'near')
    const { quotas } = await readQuotasBySlug(server.services, 'acme')
    assert.deepEqual(quotas.slice(0, 2), [
      { kind: 'bytes', limit: null, used: 5_000n, isDefault: true },
      { kind: 'requests', limit: 10, used: 9n, isDefault: true },
    ])
    await edge.report({ epoch: 'e-1', counters: [counter(5_000, { requests: 10 })] })
    await until('100 %', async () => (await levelAt(edge, server)) === 'reached')
  })

  test(`${engine}: at a reached quota claims are rejected, and tunnels that are open stay`, async (t) => {
    const server = await serve(t, { engine })
    const edge = await addTunnelEdge(server, 'a')
    const [open, other] = [tunnelOf(server), tunnelOf(server, { name: 'other' })]
    assert.equal((await edge.claim(open)).granted, true)
    await edge.sync({ changed: [open] })
    const report = { epoch: 'e-1', counters: [counter(10)] }
    assert.equal((await edge.post('/usage', report)).status, 200)
    await setQuotas(server.services, operator, 'acme', { bytes: 10 })
    const rejected = await edge.claim(other)
    assert.partialDeepStrictEqual(rejected, { granted: false, reason: 'limit_reached' })
    assert.match((rejected as { message: string }).message, /used up its quota/)
    assert.deepEqual((await edge.sync({ previous: 0, changed: [open] })).close, [])
    await setQuotas(server.services, operator, 'acme', { bytes: 11 })
    assert.equal((await edge.claim(other)).granted, true)
  })

  test(`${engine}: two edges cannot open more tunnels than the quota together`, async (t) => {
    const server = await serve(t, { engine, env: { ADIT_TUNNELS_PER_WORKSPACE: '3' } })
    const node = await addNode(t, server)
    const edges = [await addTunnelEdge(server, 'a'), await addTunnelEdge(server, 'b', node.url)] as const
    for (const edge of edges) await edge.sync()
    const tunnels = Array.from({ length: 8 }, (_, index) => tunnelOf(server, { name: `t-${index}` }))
    const results = await Promise.all(
      tunnels.map(async (tunnel, index) => {
        const edge = edges[index % 2] as (typeof edges)[0]
        return { edge, tunnel, granted: (await edge.claim(tunnel)).granted }
      }),
    )
    const granted = results.filter((result) => result.granted)
    assert.equal(granted.length, 3)
    const [{ edge, tunnel }] = granted as [(typeof granted)[0]]
    assert.equal((await edge.claim(tunnel)).granted, true, 'a repeated claim')
    await edge.sync({ changed: [tunnel] })
    await edge.sync({ closed: [tunnel.id] })
    assert.equal((await edge.claim(tunnelOf(server, { name: 'next' }))).granted, true)
    await setQuotas(server.services, operator, 'acme', { tunnels: 'none' })
    assert.equal((await edge.claim(tunnelOf(server, { name: 'more' }))).granted, true)
  })

  test(`${engine}: a client that connects again keeps its tunnel at the quota, and gets no other with its secret`, async (t) => {
    const server = await serve(t, { engine, env: { ADIT_TUNNELS_PER_WORKSPACE: '2' } })
    const edges = [await addTunnelEdge(server, 'a'), await addTunnelEdge(server, 'b')] as const
    for (const edge of edges) await edge.sync()
    const resume = 'ab'.repeat(32)
    const claim = async (index: 0 | 1, name: string) =>
      (await edges[index].claim(tunnelOf(server, { name, resume }))).granted
    assert.equal(await claim(0, 'first'), true)
    assert.equal(await claim(0, 'second'), true)
    assert.equal(await claim(0, 'third'), false)
    assert.equal(await claim(1, 'first'), true, 'it has moved')
    assert.equal(await claim(1, 'third'), false)
  })

  test(`${engine}: a tunnel whose name is taken does not count for the alert about the quota`, async (t) => {
    const server = await serve(t, { engine, env: { ADIT_TUNNELS_PER_WORKSPACE: '2' } })
    const [first, second] = [await addTunnelEdge(server, 'a'), await addTunnelEdge(server, 'b')] as const
    for (const edge of [first, second]) await edge.sync()
    const alerts = async () => {
      const rows = await readRows(server.services, 'notices', { kind: 'quota' })
      return rows.map((row) => row.dedup_key.replace(/^\S+ /, ''))
    }
    assert.equal((await first.claim(tunnelOf(server, { name: 'taken' }))).granted, true)
    const rejected = await second.claim(tunnelOf(server, { name: 'taken' }))
    assert.partialDeepStrictEqual(rejected, { granted: false, reason: 'name_taken' })
    assert.deepEqual(await alerts(), [])
    assert.equal((await second.claim(tunnelOf(server, { name: 'free' }))).granted, true)
    assert.deepEqual(await alerts(), ['tunnels 100 2'])
  })

  test(`${engine}: a quota of keys replaces the default`, async (t) => {
    const server = await serve(t, { engine, env: { ADIT_KEYS_PER_WORKSPACE: '1' } })
    const { ctx } = server
    await assert.rejects(createKey(ctx), { code: 'invalid_request' })
    await setQuotas(server.services, operator, 'acme', { keys: 2 })
    await createKey(ctx)
    await assert.rejects(createKey(ctx), { code: 'invalid_request' })
    await assert.rejects(setQuotas(server.services, operator, 'acme', { keys: 'none' }), {
      code: 'invalid_request',
    })
  })

  test(`${engine}: third-party edges and proxies are told that a quota is reached`, async (t) => {
    const { server, edge } = await serveWithEdge(t, { engine })
    await edge.report({ epoch: 'e-1', counters: [counter(10)] })
    const frp = callFrp(server, edge.token)
    const login = { user: 'acme.a', metas: { token: server.key.token } }
    const authorize = () =>
      edge.call('GET', '/authorize', { key: server.key.token, headers: { 'x-adit-edge': edge.token } })
    const sish = () =>
      postJson(server, `/edge/sish/${edge.token}`, { password: server.key.token, user: 'acme' })
    assert.equal((await authorize()).status, 204)
    assert.equal((await sish()).status, 200)
    await setQuotas(server.services, operator, 'acme', { bytes: 10 })
    assert.equal((await authorize()).status, 403)
    assert.equal((await sish()).status, 403)
    assert.equal((await frp('Login', login)).reject, true)
    assert.equal((await frp('NewUserConn', { user: login })).reject, true)
    assert.equal((await frp('Ping', { user: login })).reject, false)
    await setQuotas(server.services, operator, 'acme', { bytes: 'none' })
    assert.equal((await frp('Login', login)).reject, false)
  })
}
