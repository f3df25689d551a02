// New connections to an edge.
import { test } from 'node:test'
import { openOwnTunnel, startStandaloneEdge } from '../../support/edges/standalone-edge.ts'
import { assertAdmitted } from '../../support/network/new-connections.ts'

const get = (host: string) => `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`

test('new connections get a response within 300 ms while others send requests and open connections without pause', async (t) => {
  const { edge } = await startStandaloneEdge(t, ['acme'])
  await assertAdmitted(t, { port: edge.port, request: get('unknown.tunnels.test') })
})

test('new connections to a tunnel get a response within 300 ms during such load on another tunnel', async (t) => {
  const { edge, keys } = await startStandaloneEdge(t, ['acme', 'other'])
  const [attacked, probed] = [
    await openOwnTunnel(t, edge, keys[0] as string),
    await openOwnTunnel(t, edge, keys[1] as string),
  ]
  const target = ({ host }: { host: string }) => ({ port: edge.port, request: get(host) })
  await assertAdmitted(t, target(attacked), target(probed))
})
