// Workers of an edge that hang.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fetchHost, openTunnel } from '../../support/edges/tunnels.ts'
import { until } from '../../support/until.ts'
import { CONNECTIONS, collectLog, startStandaloneWorkers, workersOfEdge } from './edge-workers.ts'

test('a worker that hangs is killed and replaced, and its clients reconnect', async (t) => {
  const { edge, key, local } = await startStandaloneWorkers(t)
  const log = collectLog(edge)
  const tunnel = await openTunnel(t, { edge, key, port: local.port, name: 'app' })
  await until('the opening is logged', () => log.lines('tunnel opened').length === 1)
  const [{ pid } = assert.fail()] = log.lines('tunnel opened')
  process.kill(pid, 'SIGSTOP')
  await edge.waitFor(/"worker does not respond; killing it"/, 'stderr')
  await until('two workers run', () => workersOfEdge(edge).length === 2)
  await until('the client is back', () => log.lines('tunnel opened').length >= 2)
  for (let each = 0; each < CONNECTIONS; each += 1)
    await until('requests are served', async () => (await fetchHost(edge, tunnel.host)).status === 200)
})
