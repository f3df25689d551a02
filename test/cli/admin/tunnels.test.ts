// `adit admin tunnels`, and what `adit admin edge list` shows of edges that report tunnels.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { databaseUrl, serve } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { addTunnelEdge, expireLease, tunnelOf } from '../../support/edges/open-tunnels.ts'
import { pluck } from '../../support/pluck.ts'
import { run } from '../../support/processes/process.ts'

for (const engine of engines)
  test(`${engine}: the operator sees open tunnels, and version, load and last report of edges`, async (t) => {
    const server = await serve(t, { engine })
    const env = { ADIT_DATABASE_URL: databaseUrl(server) }
    const adit = async (...args: string[]) => (await run(t, ['admin', ...args], env)).stdout
    assert.equal(await adit('tunnels'), 'No open tunnels.\n')
    const edge = await addTunnelEdge(server, 'fra-1')
    await addTunnelEdge(server, 'idle')
    const access = { basicAuth: true, allowIp: ['10.0.0.0/8', '192.0.2.0/24', '198.51.100.0/24'] }
    const tunnel = tunnelOf(server, { requests: 1_200, bytesIn: 2_048, streams: 3, access })
    const other = tunnelOf(server, { name: 'a-first' })
    await edge.sync({ changed: [tunnel, other], load: { tunnels: 1, streams: 3 } })

    assert.match(
      await adit('tunnels'),
      /^WORKSPACE +URL +EDGES .*\nacme +https:\/\/a-first\S+ +fra-1 +first +192\.0\.2\.7 +open .*\nacme +https:\/\/my-app\S+ +fra-1 +first +192\.0\.2\.7 +password, 10\.0\.0\.0\/8, 192\.0\.2\.0\/24, 1 more +\S+ +1200 +2\.0 KiB +0 B +3\n$/,
    )
    const [, listed] = JSON.parse(await adit('tunnels', '--json'))
    assert.partialDeepStrictEqual(listed, {
      ...{ workspace: 'acme', id: tunnel.id, requests: 1_200, access },
      edges: [{ id: edge.id, name: 'fra-1' }],
    })
    const edges = JSON.parse(await adit('edge', 'list', '--json'))
    assert.deepEqual(pluck(edges, 'name', 'version', 'tunnels', 'streams', 'isConnected'), [
      ['idle', null, 0, 0, false],
      ['fra-1', 'adit/0.1.0', 1, 3, true],
    ])
    assert.match(
      await adit('edge', 'list'),
      /fra-1 +default +adit\/0\.1\.0 +1 +3 +20\S+Z +20\S+Z +connected\n/,
    )
    await expireLease(server, edge.id)
    assert.equal(await adit('tunnels', '--json'), '[]\n')
    assert.match(
      await adit('edge', 'list'),
      /fra-1 +default +adit\/0\.1\.0 +1 +3 +20\S+Z +20\S+Z +not connected\n/,
    )
  })
