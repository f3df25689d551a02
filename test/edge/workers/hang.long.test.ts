// Workers of an edge that hang.
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createFolder } from '../../support/databases/create.ts'
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

test('a worker that hangs before it accepts connections is killed, so that no revocation waits for its start', async (t) => {
  const temporary = createFolder(t)
  const { edge } = await startStandaloneWorkers(t, { TMPDIR: temporary })
  const [killed, other] = workersOfEdge(edge) as [number, number]
  const [folder = assert.fail()] = readdirSync(temporary).filter((name) => name.startsWith('adit-workers-'))
  const before = readdirSync(join(temporary, folder))
  process.kill(killed, 'SIGKILL')
  await until('the worker has exited', () => !workersOfEdge(edge).includes(killed))
  const hasSocket = () => readdirSync(join(temporary, folder)).some((id) => !before.includes(id))
  await until('another one starts', () => workersOfEdge(edge).length === 2 && hasSocket())
  const [starting = assert.fail()] = workersOfEdge(edge).filter((pid) => pid !== other)
  process.kill(starting, 'SIGSTOP')
  await edge.waitFor(/"worker does not respond; killing it"/, 'stderr')
  await until('two workers run', () => {
    const workers = workersOfEdge(edge)
    return workers.length === 2 && !workers.includes(starting)
  })
})
