// An agent finds a tunnel and closes it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serve } from '../support/api/server.ts'
import { engines } from '../support/databases/create.ts'
import { simulateEdge } from '../support/edges/connected-edge.ts'
import { addTunnelEdge, tunnelOf } from '../support/edges/open-tunnels.ts'
import { connectAgent, transports } from './agent.ts'

for (const engine of engines)
  for (const transport of transports)
    test(`${engine}, ${transport}: an agent lists tunnels, names and edges, and closes a tunnel`, async (t) => {
      const server = await serve(t, { engine })
      const tunnel = tunnelOf(server)
      await simulateEdge(t, server, 'fra-1', [tunnel, tunnelOf(server, { name: 'other' })])
      const agent = await connectAgent(t, transport, { url: server.url, apiKey: server.key.token })

      const listed = await agent.call('list_tunnels', { name: 'my-app' })
      assert.match(listed.text, /^Open tunnels listed: 1\.\n/)
      const [{ id }] = listed.data.tunnels
      const read = await agent.call('get_tunnel', { id })
      assert.match(
        read.text,
        /^The tunnel “my-app” is open at https:\/\/my-app\.acme\.localhost, at “fra-1”\. Requests so far: 0\.\n/,
      )
      assert.match((await agent.call('list_edges')).text, /^Edges listed: 1, connected: 1\.\n/)

      const closed = await agent.call('close_tunnel', { id })
      assert.deepEqual(closed.data, { id, closed: true })
      assert.match(closed.text, /^The tunnel tun_\w+ is closed\.\n/)
      const left = await agent.call('list_tunnels')
      assert.deepEqual(
        left.data.tunnels.map(({ name }: { name: string }) => name),
        ['other'],
      )
      assert.match(
        (await agent.call('list_tunnel_names')).text,
        /^Tunnel names listed: 2, reserved: 0\.\n/,
        'used in the last day',
      )
    })

test('a call returns 50 tunnels by default, and the cursor for more', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const edge = await addTunnelEdge(server, 'fra-1')
  const names = Array.from({ length: 60 }, (_, index) => `app-${index}`).toSorted()
  await edge.sync({ changed: names.map((name) => tunnelOf(server, { name })) })
  const agent = await connectAgent(t, 'http', { url: server.url, apiKey: server.key.token })
  const namesOf = (tool: string) => (data: Record<string, { name: string }[]>) =>
    data[tool]?.map(({ name }) => name)
  for (const [tool, list] of [
    ['list_tunnels', 'tunnels'],
    ['list_tunnel_names', 'names'],
  ] as const) {
    const first = await agent.call(tool)
    assert.deepEqual(namesOf(list)(first.data), names.slice(0, 50))
    const [, cursor = ''] = /There are more: call again with cursor "([^"]+)"\./.exec(first.text) ?? []
    const rest = await agent.call(tool, { cursor })
    assert.deepEqual(namesOf(list)(rest.data), names.slice(50))
    assert.doesNotMatch(rest.text, /There are more/)
  }
})
