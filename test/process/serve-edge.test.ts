// `adit serve --edge`: the control plane and an edge in one command.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { atEnd, type Test } from '../support/cleanup.ts'
import { createFolder } from '../support/databases/create.ts'
import { fetchHost, startLocal } from '../support/edges/tunnels.ts'
import { freePort } from '../support/processes/ports.ts'
import { root, startProcess } from '../support/processes/process.ts'
import { until } from '../support/until.ts'

interface Facts {
  url: string
  token?: string
  edge?: string
}

async function startBoth(t: Test, home: string, env: Record<string, string> = {}) {
  const settings = { HOME: home, ADIT_PORT: '0', ADIT_EDGE_PORT: '0', ...env }
  const running = startProcess(t, ['serve', '--edge', '--json'], settings)
  const [line] = await running.waitFor(/^\{.*\}$/m)
  return { ...running, ...(JSON.parse(line) as Facts) }
}

/** The process of the edge writes its id with each line of its log. */
async function findEdgeProcess({ waitFor, child }: Awaited<ReturnType<typeof startBoth>>): Promise<number> {
  const [, id] = await waitFor(/"pid":(\d+)[^\n]*"storing unreported usage"/, 'stderr')
  assert.notEqual(Number(id), child.pid)
  return Number(id)
}

const isRunning = (id: number) => {
  try {
    return process.kill(id, 0)
  } catch {
    return false
  }
}

/** `adit start` with the adit.json of the documentation, except for the ports of its local servers. */
async function startSample(t: Test, access: Record<string, string>, port: number): Promise<string[]> {
  const [, sample = ''] =
    /```json\n(\{\n {2}"tunnels".*?)```/s.exec(readFileSync(join(root, 'docs/cli.md'), 'utf8')) ?? []
  const names = Object.keys(JSON.parse(sample).tunnels)
  const folder = createFolder(t)
  writeFileSync(join(folder, 'adit.json'), sample.replaceAll(/\b[34]000\b/g, String(port)))
  const started = startProcess(t, ['start', '--json'], { ...access, HOME: folder }, '', folder)
  for (const name of names) await started.waitFor(new RegExp(`"event":"open","name":"${name}"`))
  return names
}

test('one command runs a server and its edge, which stays the same edge after a restart', async (t) => {
  const home = createFolder(t)
  const first = await startBoth(t, home, { ADIT_LOG_LEVEL: 'debug', ADIT_ACCESS_LOG: 'all' })
  const { port } = await startLocal(t)
  const access = { ADIT_URL: first.url, ADIT_API_KEY: first.token as string }
  const tunnel = startProcess(t, ['tunnel', String(port), '--name', 'app'], access)
  await tunnel.waitFor(/^http:\/\/app\.default\.localhost:\d+$/m)
  const edge = { port: Number(new URL(first.edge as string).port) }
  assert.equal((await fetchHost(edge, 'app.default.localhost', { path: '/' })).status, 200)
  const names = await startSample(t, access, port)
  for (const name of names)
    assert.equal((await fetchHost(edge, `${name}.default.localhost`, { path: '/' })).status, 200, name)
  const { code, stderr } = await first.stop('SIGINT')
  assert.equal(code, 0)
  assert.ok(
    stderr.lastIndexOf('"route":"/edge/v1/') < stderr.lastIndexOf('"msg":"stopped"'),
    'the edge first',
  )

  const second = await startBoth(t, home)
  await second.stop()
  const { stdout } = await startProcess(t, ['admin', 'edge', 'list', '--json'], { HOME: home }).ended
  assert.deepEqual(
    JSON.parse(stdout).map(({ name }: { name: string }) => name),
    ['local'],
  )
})

test('an edge that is killed is started again, and does not outlive a killed server', async (t) => {
  const both = await startBoth(t, createFolder(t))
  process.kill(await findEdgeProcess(both), 'SIGKILL')
  const [, next] = await both.waitFor(
    /"edge exited; restarting"[\s\S]*"pid":(\d+)[^\n]*"storing unreported usage"/,
    'stderr',
  )
  atEnd(t, () => isRunning(Number(next)) && process.kill(Number(next), 'SIGKILL'))
  both.child.kill('SIGKILL')
  await until('the edge is gone', () => !isRunning(Number(next)))
})

test('an edge whose port is in use when it restarts is started again once the port is free', async (t) => {
  const port = await freePort()
  const both = await startBoth(t, createFolder(t), { ADIT_EDGE_PORT: String(port) })
  process.kill(await findEdgeProcess(both), 'SIGKILL')
  await both.waitFor(/"edge exited; restarting"/, 'stderr')
  const other = createServer().listen(port)
  atEnd(t, () => other.close())
  await once(other, 'listening')
  await both.waitFor(/the edge did not start/, 'stderr')
  other.close()
  await both.waitFor(/the edge did not start[\s\S]*"storing unreported usage"/, 'stderr')
})

test('without a port for the edge the server runs, and the log has the reason', async (t) => {
  const port = String(await freePort())
  const both = await startBoth(t, createFolder(t), { ADIT_PORT: port, ADIT_EDGE_PORT: port })
  assert.equal(both.edge, undefined)
  await both.waitFor(/Another program listens on/, 'stderr')
  await both.waitFor(/the edge did not start/, 'stderr')
})

test('the edge has no secret of the server, and reaches it without the proxy of the environment', async (t) => {
  if (process.platform !== 'linux') return t.skip('reads the environment of the process in /proc')
  const proxy = `http://127.0.0.1:${await freePort()}`
  const secrets = { ADIT_SECRET: 'hidden-'.repeat(8), PGPASSWORD: 'hidden' }
  const log = { ADIT_LOG_LEVEL: 'debug', ADIT_ACCESS_LOG: 'all' }
  const both = await startBoth(t, createFolder(t), { ...secrets, ...log, HTTP_PROXY: proxy })
  const id = await findEdgeProcess(both)
  assert.doesNotMatch(readFileSync(`/proc/${id}/environ`, 'utf8'), /hidden/)
  await both.waitFor(/"route":"\/edge\/v1\/keys\/verify"/, 'stderr')
})

test('with another tunnel domain, clients on this machine find the edge; others need its public URL', async (t) => {
  const home = createFolder(t)
  const domain = { ADIT_TUNNEL_DOMAIN: 'tunnels.example.test' }
  const local = await startBoth(t, home, domain)
  const { port } = await startLocal(t)
  const access = { ADIT_URL: local.url, ADIT_API_KEY: local.token as string }
  const tunnel = startProcess(t, ['tunnel', String(port), '--name', 'app'], access)
  await tunnel.waitFor(/^http:\/\/app\.default\.tunnels\.example\.test:\d+$/m)
  const edge = { port: Number(new URL(local.edge as string).port) }
  assert.equal((await fetchHost(edge, 'app.default.tunnels.example.test', { path: '/' })).status, 200)
  await local.stop()

  const published = await startBoth(t, home, { ...domain, ADIT_BASE_URL: 'https://adit.example.test' })
  await published.waitFor(
    /clients look for the edge at the tunnel domain; .* its URL: adit admin edge set-url edge_\w+ <url>/,
    'stderr',
  )
  const { stdout } = await startProcess(t, ['admin', 'edge', 'list', '--json'], { HOME: home }).ended
  assert.equal(JSON.parse(stdout)[0].url, null)
})
