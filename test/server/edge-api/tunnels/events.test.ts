// Events of tunnels for webhooks: all of honest use, and a bounded number of whatever an edge reports.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HOUR_MS } from '../../../../src/lib/time.ts'
import { EVENTS_PER_HOUR_MAX, WAITING_MAX } from '../../../../src/server/domain/events/tunnel-events.ts'
import { PENDING_FAILING_MAX, queueEvents } from '../../../../src/server/domain/webhooks/queue.ts'
import { serve, type TestServer } from '../../../support/api/server.ts'
import { engines } from '../../../support/databases/create.ts'
import { readRows } from '../../../support/databases/rows.ts'
import { addTunnelEdge, type TunnelEdge, tunnelOf } from '../../../support/edges/open-tunnels.ts'
import { addEndpoint } from '../../../support/events/webhooks.ts'

/** Opens and closes so many tunnels, 1,000 in each sync. */
async function churn(server: TestServer, edge: TunnelEdge, rounds: number): Promise<void> {
  let open: string[] = []
  for (let round = 0; round < rounds; round++) {
    const changed = Array.from({ length: 1_000 }, (_, index) => tunnelOf(server, { name: `n${index}` }))
    await edge.sync({ changed: round % 2 === 0 ? changed : [], closed: open })
    open = round % 2 === 0 ? changed.map(({ id }) => id) : []
  }
}

const countByType = async ({ services }: TestServer, endpointId: string) => {
  const rows = await readRows(services, 'webhook_deliveries', { endpoint_id: endpointId })
  const byType = Object.entries(Object.groupBy(rows, ({ type }) => type))
  return Object.fromEntries(byType.map(([type, some = []]) => [type, some.length]))
}

/** Not polled for by the server: it only records. */
const PAUSED = { ADIT_WEBHOOK_PRIVATE_NETWORKS: '127.0.0.0/8' }

for (const engine of engines) {
  test(`${engine}: events of an edge and workspace are limited in an hour, with one event that says so`, async (t) => {
    const server = await serve(t, { engine, env: PAUSED })
    const [edge, other] = [await addTunnelEdge(server, 'a'), await addTunnelEdge(server, 'b')]
    const endpoint = await addEndpoint(server.services, server.workspace.id, {
      url: 'https://127.0.0.1:9/',
      events: ',tunnel.opened,tunnel.closed,tunnel.limited,',
    })
    const { store } = server.services
    const now = (hour: number) =>
      store.transaction((tx) =>
        tx
          .updateTable('edge_workspaces')
          .set({ events: EVENTS_PER_HOUR_MAX - 1_500, events_hour: hour })
          .where('edge_id', '=', edge.id)
          .execute(),
      )
    const thisHour = Math.floor(Date.now() / HOUR_MS) * HOUR_MS
    await now(thisHour)
    await churn(server, edge, 6)
    const limited = await countByType(server, endpoint)
    assert.equal(limited['tunnel.limited'], 1)
    assert.equal(limited['tunnel.opened'], 1_000)
    assert.equal(limited['tunnel.closed'], 500)
    // Another edge is not affected, and neither is the next hour.
    await other.sync({ changed: [tunnelOf(server, { name: 'mine' })] })
    await now(thisHour - HOUR_MS)
    await edge.sync({ changed: [tunnelOf(server, { name: 'next' })] })
    assert.equal((await countByType(server, endpoint))['tunnel.opened'], 1_002)
  })

  test(`${engine}: events of tunnels neither disable an endpoint nor make a long queue longer`, async (t) => {
    const server = await serve(t, { engine, env: PAUSED })
    const edge = await addTunnelEdge(server, 'a')
    const { services, workspace } = server
    const failing = {
      url: 'https://127.0.0.1:9/',
      failing_since: Date.now() - 2 * HOUR_MS,
      due_at: Date.now() + HOUR_MS,
    }
    const endpoint = await addEndpoint(services, workspace.id, failing)
    const rounds = PENDING_FAILING_MAX / 1_000 + 6
    for (let round = 0; round < rounds; round++) {
      await churn(server, edge, 1)
      await edge.sync({ previous: 0 })
      await queueEvents(services)
    }
    const [row] = await readRows(services, 'webhook_endpoints', { id: endpoint })
    assert.equal(row?.disabled_at, null)
    const { 'tunnel.opened': opened = 0, 'tunnel.closed': closed = 0 } = await countByType(server, endpoint)
    assert.ok(opened + closed >= WAITING_MAX, 'the queue was long')
    assert.ok(opened + closed <= WAITING_MAX + 2_000, `${opened + closed} events wait`)
  })
}
