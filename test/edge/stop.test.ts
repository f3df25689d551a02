// What happens to connections when `adit tunnel` is stopped.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { DRAIN_MS } from '../../src/tunnel-client/run.ts'
import { startStandaloneEdge } from '../support/edges/standalone-edge.ts'
import { openSocket, openTunnel } from '../support/edges/tunnels.ts'

test('a tunnel that is stopped closes idle WebSockets at once, and waits for active ones', async (t) => {
  const { edge, keys, local } = await startStandaloneEdge(t, ['acme'])
  const tunnel = await openTunnel(t, { edge, key: keys[0] as string, port: local.port, name: 'app' })
  const idle = await openSocket(edge, tunnel.host)
  const active = await openSocket(edge, tunnel.host)
  const activeClosed = once(active, 'close')
  const stoppedAt = performance.now()
  tunnel.child.kill('SIGTERM')
  for (let turn = 0; turn < 10; turn++) {
    active.send(`message ${turn}`)
    const [message] = await once(active, 'message')
    assert.equal(String(message), `message ${turn}`)
    await sleep(200)
  }
  assert.deepEqual([idle.readyState, active.readyState], [WebSocket.CLOSED, WebSocket.OPEN])
  assert.equal((await tunnel.ended).code, 0)
  await activeClosed
  assert.ok(performance.now() - stoppedAt < DRAIN_MS)
})
