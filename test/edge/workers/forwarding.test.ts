// An edge with two workers behind one port: it makes no difference which worker has the client of a tunnel,
// and which one a request reaches.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { scrape } from '../../support/api/metrics.ts'
import { createFolder } from '../../support/databases/create.ts'
import { openRawTunnel } from '../../support/edges/standalone-edge.ts'
import { fetchHost, openSocket, openTunnel } from '../../support/edges/tunnels.ts'
import { run } from '../../support/processes/process.ts'
import { until } from '../../support/until.ts'
import { CONNECTIONS, collectLog, openInEachWorker, startStandaloneWorkers } from './edge-workers.ts'

const temporary = createFolder({ after })
const { edge, key, local } = await startStandaloneWorkers({ after }, { TMPDIR: temporary })
const log = collectLog(edge)
const [line] = await edge.waitFor(/^\{.*\}$/m)
const { metrics } = JSON.parse(line) as { metrics: string }

/** Calls `act` so often, one call after another, that its connections reach both workers. */
async function repeat<T>(act: () => Promise<T>): Promise<T[]> {
  const results: T[] = []
  while (results.length < CONNECTIONS) results.push(await act())
  return results
}

test('requests and uploads reach a client of the other worker, and are counted once', async (t) => {
  const { host } = await openTunnel(t, { edge, key, port: local.port, name: 'requests' })
  const before = await scrape(metrics)
  const responses = await repeat(() => fetchHost(edge, host, { path: '/hello' }))
  assert.deepEqual(new Set(responses.map(({ status }) => status)), new Set([200]))
  const body = Buffer.alloc(300_000, 'u')
  const uploads = await repeat(() => fetchHost(edge, host, { method: 'POST', body }))
  for (const each of uploads) assert.equal(JSON.parse(String(each.body)).received, body.length)
  const large = await repeat(() => fetchHost(edge, host, { path: '/bytes/300000' }))
  for (const each of large) assert.equal(each.body.length, 300_000)
  const counted = await scrape(metrics)
  const added = (name: string) => (counted.get(name) ?? 0) - (before.get(name) ?? 0)
  assert.equal(added('adit_edge_requests_total'), 3 * CONNECTIONS)
  assert.ok(added('adit_edge_bytes_total{direction="in"}') > CONNECTIONS * body.length)
  assert.equal(counted.get('adit_edge_tunnels_open{type="http"}'), 1)
  assert.equal(counted.get('adit_edge_tunnel_clients'), 1)
  assert.equal(counted.get('adit_build_info{version="0.1.0"}'), 1)
})

test('WebSockets reach a client of the other worker', async (t) => {
  const { host } = await openTunnel(t, { edge, key, port: local.port, name: 'sockets' })
  const sockets = await repeat(() => openSocket(edge, host))
  for (const [index, socket] of sockets.entries()) {
    const reply = once(socket, 'message')
    socket.send(`hello ${index}`)
    assert.equal(String((await reply)[0]), `hello ${index}`)
  }
  for (const socket of sockets) socket.terminate()
})

test('a request right after the tunnel was opened finds it in every worker', async () => {
  for (let round = 0; round < CONNECTIONS; round += 1) {
    const tunnel = await openRawTunnel(edge, key, { name: `new-${round}` })
    tunnel.respond('HTTP/1.1 204 No Content\r\n\r\n')
    assert.equal((await fetchHost(edge, tunnel.host)).status, 204)
    tunnel.close()
  }
})

test('no worker opens a name of another client, and any opens it for the same session', async () => {
  const session = 's'.repeat(32)
  const tunnel = await openRawTunnel(edge, key, { name: 'single', session })
  const others = await repeat(() =>
    openRawTunnel(edge, key, { name: 'single' }).then(
      () => 'opened',
      (error: Error) => error.message,
    ),
  )
  for (const each of others) assert.match(each, /a tunnel is already open at single\.acme\.tunnels\.test/)
  const before = await scrape(metrics)
  const connections = [tunnel]
  await openInEachWorker(edge, log, tunnel.host, async () =>
    connections.push(await openRawTunnel(edge, key, { name: 'single', session })),
  )
  const counted = await scrape(metrics)
  assert.equal(
    counted.get('adit_edge_tunnels_open{type="http"}'),
    before.get('adit_edge_tunnels_open{type="http"}'),
  )
  for (const connection of connections) connection.close()
})

test('clients of a pool at different workers need the same rules', async () => {
  const access = { allowIp: ['127.0.0.1', '10.0.0.0/8'] }
  const first = await openRawTunnel(edge, key, { name: 'pool', pool: true, access })
  const others = await repeat(() =>
    openRawTunnel(edge, key, { name: 'pool', pool: true }).then(
      () => 'opened',
      (error: Error) => error.message,
    ),
  )
  for (const each of others) assert.match(each, /different access rules/)
  await openInEachWorker(edge, log, first.host, () =>
    openRawTunnel(edge, key, { name: 'pool', pool: true, access }),
  )
})

test('a client that reconnects to the other worker replaces its lost connection', async () => {
  const request = { name: 'resumed', session: 's'.repeat(32), resume: 'r'.repeat(32) }
  const first = await openRawTunnel(edge, key, request)
  const closed = new Promise((resolve) => first.events.once('close', resolve).on('error', () => {}))
  const second = await openRawTunnel(edge, key, request)
  await closed
  second.respond('HTTP/1.1 204 No Content\r\n\r\n')
  for (const { status } of await repeat(() => fetchHost(edge, second.host))) assert.equal(status, 204)
  second.close()
  await until('the tunnel is closed everywhere', async () => {
    const responses = await repeat(() => fetchHost(edge, second.host))
    return responses.every(({ status }) => status === 404)
  })
})

test('only the user that runs the edge may open the folder with the sockets of its workers', () => {
  const folders = readdirSync(temporary).filter((name) => name.startsWith('adit-workers-'))
  assert.equal(folders.length, 1)
  for (const folder of folders) assert.equal(statSync(join(temporary, folder)).mode & 0o777, 0o700)
})

test('an invalid ADIT_EDGE_WORKERS is rejected with the valid values', async (t) => {
  for (const value of ['0', 'many', '65']) {
    const { code, stderr } = await run(t, ['edge'], { ADIT_EDGE_WORKERS: value })
    assert.equal(code, 2)
    assert.match(stderr, /ADIT_EDGE_WORKERS must be auto or a whole number from 1 to 64/)
  }
})
