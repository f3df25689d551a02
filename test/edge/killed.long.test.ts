// Processes that are killed: two nodes on PostgreSQL, two edges and their tunnel clients.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TUNNEL_LEASE_S } from '../../src/contract/edge/tunnels.ts'
import { BACKOFF_MAX_MS } from '../../src/tunnel-client/run.ts'
import { openBrowser, PASSWORD } from '../support/accounts/users.ts'
import { createDatabase } from '../support/databases/create.ts'
import { SECRET } from '../support/databases/migrated-databases.ts'
import {
  type Edge,
  newKey,
  openTunnel,
  startLocal,
  startPlane,
  startTunnelEdge,
} from '../support/edges/tunnels.ts'
import { startRelay } from '../support/network/relay.ts'
import { freePort } from '../support/processes/ports.ts'
import { startServing } from '../support/processes/process.ts'
import { until } from '../support/until.ts'

/**
 * Besides the lease, or the backoff of clients: what the database, the processes and the test itself take on
 * a busy machine.
 */
const SLACK_MS = 5_000

const kill = async ({ child, ended }: Pick<Edge, 'child' | 'ended'>) => {
  child.kill('SIGKILL')
  await ended
}

test('an edge and a node are killed: the list of open tunnels is exact within a lease, and complete after a restart', async (t) => {
  const plane = await startPlane(t, ['acme'], {
    ADIT_DATABASE_URL: await createDatabase(t, 'postgres'),
    ADIT_SECRET: SECRET,
  })
  const other = await startServing(t, { ...plane.env, ADIT_PORT: String(await freePort()) })
  // As a load balancer: edges reach a node that is up.
  const balancer = await startRelay(t, plane.url)
  const startEdge = () => startTunnelEdge(t, { plane: { ...plane, url: balancer.url } })
  const [first, second] = [await startEdge(), await startEdge()]
  const local = await startLocal(t)
  const key = await newKey(plane, 'acme')
  for (const [edge, name] of [
    [first, 'a'],
    [first, 'b'],
    [second, 'c'],
    [second, 'd'],
  ] as const)
    await openTunnel(t, { edge, key, port: local.port, name })

  const member = openBrowser(other.url)
  const output = await plane.admin(
    'user',
    'invite',
    'ann@example.com',
    '--workspace',
    'acme',
    '--role',
    'member',
  )
  const [, link] = /#([\w-]{43})/.exec(output) ?? assert.fail(output)
  await member.post('/links/redeem', { link, email: 'ann@example.com', name: 'Ann', password: PASSWORD })
  const listed = async () => {
    const { json } = await member.get('/workspaces/acme/tunnels')
    return (json.tunnels as { name: string }[]).map(({ name }) => name).join()
  }
  assert.equal(await listed(), 'a,b,c,d')

  await Promise.all([kill(first), kill(plane)])
  balancer.retarget(other.url)
  const took = await until('exact', async () => (await listed()) === 'c,d', TUNNEL_LEASE_S * 1000 + SLACK_MS)
  t.diagnostic(`exact after ${Math.round(took)} ms`)

  const third = await openTunnel(t, { edge: second, key, port: local.port, name: 'e' })
  assert.equal(await listed(), 'c,d,e')
  await first.restart()
  const areBack = async () => (await listed()) === 'a,b,c,d,e'
  await until('its clients are back', areBack, BACKOFF_MAX_MS + SLACK_MS)
  await kill(third)
  await until('the client is gone', async () => (await listed()) === 'a,b,c,d')
})
