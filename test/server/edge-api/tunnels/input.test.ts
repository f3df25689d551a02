// Hostile claims and syncs: every field has a limit, and what is stored is bounded.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readLatest } from '../../../../src/server/store/change-log/entries.ts'
import { serve } from '../../../support/api/server.ts'
import { engines } from '../../../support/databases/create.ts'
import { addTunnelEdge, storedTunnels, tunnelOf } from '../../../support/edges/open-tunnels.ts'
import { pluck } from '../../../support/pluck.ts'

const invalidFields: Record<string, unknown[]> = {
  id: ['tun_short', `tun_${'a'.repeat(41)}`, "tun_0000000000'", 'tok_0000000000', 7],
  workspace: ['', 'Acme', 'a'.repeat(64), 'a.b'],
  name: ['', 'a'.repeat(64), '-a', 'a_b', 'a\u0000'],
  type: ['udp', null],
  pool: ['true', 1],
  url: ['javascript:alert(1)', 'https://a.example/path', 'https://a b', `https://${'a'.repeat(300)}`],
  keyId: ['', 'x'.repeat(101), 'tok_\u0000'],
  clientAddress: ['', 'x', '1'.repeat(46), '::::::', '192.0.2.256'],
  clientVersion: ['é', 'a'.repeat(101), 'a\nb'],
  openedAt: ['yesterday', '2026-02-30T00:00:00.000Z', '2026-11-15T10:02:11+01:00'],
  access: [null, {}, { basicAuth: true }, { basicAuth: true, allowIp: ['10.0.0.0/33'] }],
  resume: ['ab', 'AB'.repeat(32), 'zz'.repeat(32)],
}
const invalidCounters: Record<string, unknown[]> = {
  requests: [-1, 1.5, 2 ** 53, '1', null],
  bytesIn: [-1, 2 ** 60],
  bytesOut: [-1, 2 ** 60],
  streams: [-1, 1_000_001],
}
const invalidSyncs: Record<string, unknown[]> = {
  session: ['', 'x', `${'0'.repeat(9)}-short`, `${'0'.repeat(9)}-${'a'.repeat(33)}`, '000000000-ABCDEFGH'],
  sequence: [0, -1, 1.5, 2 ** 53],
  previous: [-1, 2 ** 53],
  version: ['é', 'a'.repeat(101)],
  startedAt: ['x', '2026-02-30T00:00:00.000Z'],
  load: [{}, { tunnels: -1, streams: 0 }, { tunnels: 0, streams: 1_000_001 }],
  changed: [{}, null, [null], [{}]],
  closed: [{}, [1], ['tun_'], Array(1_001).fill('tun_0000000000')],
}

for (const engine of engines) {
  test(`${engine}: every field of a claim and a sync is checked, and nothing of an invalid one is stored`, async (t) => {
    const server = await serve(t, { engine })
    const edge = await addTunnelEdge(server, 'a')
    const expectInvalid = async (path: string, body: unknown, what: string) => {
      const { status, json, text } = await edge.post(path, body)
      assert.deepEqual([status, json?.error], [400, 'invalid_request'], `${what}: ${text}`)
    }
    for (const [field, values] of Object.entries({ ...invalidFields, ...invalidCounters }))
      for (const value of values) {
        const tunnel = { ...tunnelOf(server), [field]: value }
        const what = `${field} ${JSON.stringify(value)}`
        await expectInvalid('/tunnels/sync', edge.syncBody({ changed: [tunnelOf(server), tunnel] }), what)
        if (field in invalidFields) await expectInvalid('/tunnels/claim', edge.claimBody(tunnel), what)
      }
    for (const [field, values] of Object.entries(invalidSyncs))
      for (const value of values)
        await expectInvalid('/tunnels/sync', { ...edge.syncBody(), [field]: value }, `${field} ${value}`)
    const huge = await edge.post('/tunnels/sync', {
      ...edge.syncBody(),
      version: 'a'.repeat(3 * 1024 * 1024),
    })
    assert.ok(huge.status >= 400 && huge.status < 500, String(huge.status))
    assert.deepEqual(await storedTunnels(server, edge.id), [])
  })

  test(`${engine}: the address of a tunnel is under the tunnel domain of its workspace, whatever the edge reports`, async (t) => {
    const server = await serve(t, { engine, env: { ADIT_TCP_PORTS: '20000' } })
    const edge = await addTunnelEdge(server, 'a')
    const urls: [reported: string, type: 'http' | 'tcp', stored: string][] = [
      ['https://phishing.example', 'http', 'https://my-app.acme.localhost'],
      ['http://phishing.example:8081/', 'http', 'http://my-app.acme.localhost:8081'],
      ['tcp://my-app.acme.localhost', 'http', 'https://my-app.acme.localhost'],
      ['https://my-app.acme.localhost:99999', 'http', 'https://my-app.acme.localhost'],
      ['tcp://phishing.example:20000', 'tcp', 'tcp://my-app.acme.localhost:20000'],
    ]
    const claimed = tunnelOf(server, { url: 'https://phishing.example' })
    await edge.claim(claimed)
    const tunnels = urls.map(([url, type]) => tunnelOf(server, { url, type, pool: true }))
    await edge.sync({ changed: [{ ...claimed, requests: 1 }, ...tunnels] })
    const rows = await server.services.store.db.selectFrom('open_tunnels').select(['id', 'url']).execute()
    const stored = new Map(rows.map(({ id, url }) => [id, url]))
    assert.deepEqual(
      [claimed, ...tunnels].map(({ id }) => stored.get(id)),
      ['https://my-app.acme.localhost', ...urls.map(([, , url]) => url)],
    )
  })

  test(`${engine}: a workspace has at most 1,000 names, and reserved ones stay`, async (t) => {
    const server = await serve(t, { engine })
    const { store } = server.services
    const edge = await addTunnelEdge(server, 'a')
    const reserved = { workspace_id: server.workspace.id, name: 'reserved', created_at: 1 }
    await store.transaction((db) => db.insertInto('tunnel_names').values(reserved).execute())
    const open = (from: number, count: number) =>
      Array.from({ length: count }, (_, index) => tunnelOf(server, { name: `n${from + index}` }))
    const first = open(0, 999)
    await edge.sync({ changed: first })
    await edge.sync({ closed: first.map(({ id }) => id) })
    for (const tunnel of open(2_000, 5)) await edge.claim(tunnel)
    const names = (await store.db.selectFrom('tunnel_names').select('name').execute()).map(({ name }) => name)
    assert.equal(names.length, 1_000)
    assert.ok(names.includes('reserved') && names.includes('n2004'))
  })

  test(`${engine}: changes of tunnels do not displace revocations that a new stream begins with`, async (t) => {
    const server = await serve(t, { engine })
    const { store } = server.services
    await store.transaction(async (db) => {
      const entry = { hash: 'h', at: 1, checksum: 'm', previous_checksum: '' }
      const values = Array.from({ length: 20 }, (_, index) => ({
        ...entry,
        sequence: index + 1,
        kind: index === 0 ? ('key' as const) : ('tunnels' as const),
        subject_id: `s${index}`,
      }))
      await db.insertInto('change_log').values(values).execute()
    })
    const latest = await readLatest(store.db, { sequence: 20, checksum: 'm' }, 10)
    assert.deepEqual(pluck(latest, 'subjectId'), ['s0'])
  })
}
