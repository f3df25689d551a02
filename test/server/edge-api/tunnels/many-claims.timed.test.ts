// The work of a claim does not grow with the product of its tunnels and those that share their name.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serve } from '../../../support/api/server.ts'
import { engines } from '../../../support/databases/create.ts'
import { addTunnelEdge, tunnelOf } from '../../../support/edges/open-tunnels.ts'

/** Less than a lease, on a busy machine: a node that is blocked for longer rejects every request. */
const CLAIM_MAX_MS = 1_500

for (const engine of engines)
  test(`${engine}: many claims of a name that many share do not block the server`, async (t) => {
    const server = await serve(t, { engine })
    const [first, second] = [await addTunnelEdge(server, 'a'), await addTunnelEdge(server, 'b')]
    const pooled = (count: number, digit: string) =>
      Array.from({ length: count }, (_, index) =>
        tunnelOf(server, { name: 'shared', pool: true, resume: `${index}`.padStart(64, digit) }),
      )
    await first.sync({ changed: pooled(1_000, 'a') })
    await second.sync()
    const tunnels = pooled(250, 'b')
    const startedAt = performance.now()
    const results = await second.claimAll(tunnels)
    const ms = Math.round(performance.now() - startedAt)
    assert.ok(results.every(({ granted }) => granted))
    assert.ok(ms < CLAIM_MAX_MS, `the claim took ${ms} ms`)
  })
