// How soon edges learn of revocations.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { revoke as revokeEdge } from '../../../src/server/domain/tunnels/edges.ts'
import { addEdge, operator, serve, serveWithEdge } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { createOperator } from '../../support/processes/commands.ts'
import { startServing } from '../../support/processes/process.ts'
import { announces, listen, parseSequence } from './change-stream.ts'

for (const engine of engines) {
  test(`${engine}: a revocation through the API reaches a connected edge within a second`, async (t) => {
    const { server, edge } = await serveWithEdge(t, { engine })
    const stream = await listen(t, server.url, edge.token)
    const times: number[] = []
    for (let round = 0; round < 10; round++) {
      const created = (await server.post('/tokens', {})).json
      await server.call('DELETE', `/tokens/${created.id}`)
      times.push(await stream.until(announces(created), 1_000))
    }
    const ids = stream.received.flatMap(({ id, event }) => (event ? [parseSequence(id)] : []))
    assert.deepEqual(ids, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    t.diagnostic(`received at most ${Math.round(Math.max(...times))} ms after the acknowledgement`)
  })

  test(`${engine}: a revocation by a command in another process reaches it within a second`, async (t) => {
    const { env, json } = await createOperator(t, engine)
    await json('workspace', 'create', 'acme')
    const key = await json('key', 'create', '--workspace', 'acme')
    const edge = await json('edge', 'create', 'fra-1')
    const serving = await startServing(t, env)
    const stream = await listen(t, serving.url, edge.token)
    await json('key', 'revoke', key.id, '--yes')
    const ms = await stream.until(announces(key), 1_000)
    t.diagnostic(`received ${Math.round(ms)} ms after the command had ended`)
  })

  test(`${engine}: when an edge is revoked its stream ends within a second, and the others continue`, async (t) => {
    const server = await serve(t, { engine })
    const [gone, stays] = [await addEdge(server, 'gone'), await addEdge(server, 'stays')]
    const [ends, continues] = [
      await listen(t, server.url, gone.token),
      await listen(t, server.url, stays.token),
    ]
    await revokeEdge(server.services, operator, gone.id)
    await ends.until(() => ends.isOver(), 1_000)
    const created = (await server.post('/tokens', {})).json
    await server.call('DELETE', `/tokens/${created.id}`)
    await continues.until(announces(created), 1_000)
    assert.ok(!JSON.stringify(continues.received).includes(gone.id), 'an edge receives nothing about another')
    assert.equal((await gone.call('GET', '/key-changes')).status, 401)
  })
}
