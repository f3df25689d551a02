// The counts of edges that are gone: another edge with the name takes over, and no minute is counted twice.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import { MINUTE_MS } from '../../../../src/lib/time.ts'
import { moveCountsOfLostEdges } from '../../../../src/server/domain/tunnels/counts.ts'
import { serve, type TestServer } from '../../../support/api/server.ts'
import type { Test } from '../../../support/cleanup.ts'
import { type Engine, engines } from '../../../support/databases/create.ts'
import { addTunnelEdge, expireLease, tunnelOf } from '../../../support/edges/open-tunnels.ts'

const moveCounts = ({ services }: TestServer) =>
  moveCountsOfLostEdges({ services, proceed: async () => true })

const countingEdges = async ({ services }: TestServer) => {
  const names = services.store.db.selectFrom('tunnel_names').select('counting_edge_id').orderBy('name')
  return (await names.execute()).map((row) => row.counting_edge_id)
}

/** A tunnel at two edges, of which the first one counts it. `lease` is what both say about theirs. */
async function setUp(t: Test, engine: Engine, { lease = { applied: '0' }, env = {} } = {}) {
  const server = await serve(t, { engine, env })
  const [a, b] = [await addTunnelEdge(server, 'a'), await addTunnelEdge(server, 'b')]
  const connection = (resume: string) => tunnelOf(server, { session: 'ab'.repeat(32), resume })
  const [first, second] = [connection('1'.repeat(64)), connection('2'.repeat(64))]
  for (const edge of [a, b]) await edge.sync(lease)
  await a.claim(first)
  await b.claim(second)
  assert.deepEqual(await countingEdges(server), [a.id])
  return { server, a, b, first, second }
}

for (const engine of engines) {
  test(`${engine}: the count of an edge that is gone moves to another edge, and back if that one is gone, too`, async (t) => {
    const { server, a, b, first, second } = await setUp(t, engine)
    await expireLease(server, a.id)
    const before = Date.now()
    await moveCounts(server)
    assert.deepEqual(await countingEdges(server), [b.id])
    const { names } = await b.sync({ applied: '0', changed: [second] })
    const from = Date.parse(names[0]?.countsFrom ?? '')
    assert.equal(names[0]?.counts, true)
    assert.equal(from % MINUTE_MS, 0)
    assert.ok(from > before && from <= Date.now() + MINUTE_MS)
    // The first edge is back, and is told with the sync that renews its lease.
    assert.equal((await a.sync({ applied: '0' })).resync, true)
    assert.partialDeepStrictEqual((await a.sync({ applied: '0', changed: [first] })).names, [
      { counts: false },
    ])
    await moveCounts(server)
    assert.deepEqual(await countingEdges(server), [b.id])
    await expireLease(server, b.id)
    await moveCounts(server)
    assert.deepEqual(await countingEdges(server), [a.id])
  })

  test(`${engine}: an edge that may still have its lease keeps the count`, async (t) => {
    const { server, a } = await setUp(t, engine)
    await server.services.store.transaction((tx) =>
      tx
        .updateTable('edge_sessions')
        .set({ lease_until: Date.now() - 5_000 })
        .where('edge_id', '=', a.id)
        .execute(),
    )
    await moveCounts(server)
    assert.deepEqual(await countingEdges(server), [a.id])
  })

  test(`${engine}: an edge that counts without a lease keeps the count`, async (t) => {
    const { server, a } = await setUp(t, engine, { lease: {} as { applied: string } })
    await expireLease(server, a.id)
    await moveCounts(server)
    assert.deepEqual(await countingEdges(server), [a.id])
    const off = await setUp(t, engine, { env: { ADIT_EDGE_ACKNOWLEDGMENTS: 'off' } })
    await expireLease(off.server, off.a.id)
    await moveCounts(off.server)
    assert.deepEqual(await countingEdges(off.server), [off.a.id])
  })

  test(`${engine}: an edge keeps the counts of names that no other edge has`, async (t) => {
    const { server, a, b, second } = await setUp(t, engine)
    await b.sync({ applied: '0', closed: [second.id] })
    await expireLease(server, a.id)
    await moveCounts(server)
    assert.deepEqual(await countingEdges(server), [a.id])
  })

  test(`${engine}: all names of an edge that is gone move, and the edge is told about all`, async (t) => {
    const server = await serve(t, { engine, env: { ADIT_TUNNELS_PER_WORKSPACE: '5000' } })
    const [a, b] = [await addTunnelEdge(server, 'a'), await addTunnelEdge(server, 'b')]
    const tunnelsAt = (resume: string) =>
      Array.from({ length: 400 }, (_, index) =>
        tunnelOf(server, {
          name: `app-${index}`,
          session: 'ab'.repeat(32),
          resume: resume + String(index).padStart(60, '0'),
        }),
      )
    const [first, second] = [tunnelsAt('aaaa'), tunnelsAt('bbbb')]
    await a.sync({ applied: '0', changed: first })
    await b.sync({ applied: '0', changed: second })
    await expireLease(server, a.id)
    await moveCounts(server)
    assert.deepEqual(new Set(await countingEdges(server)), new Set([b.id]))
    const { rows } = await sql<{ waiting: number }>`select count(*) as waiting from open_tunnels
      where instruction_sequence = 0`.execute(server.services.store.db)
    assert.equal(Number(rows[0]?.waiting), first.length + second.length)
  })
}
