// Clients that read slowly, and local servers that do: what the edge buffers for them is bounded in total.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { watchProcess } from '../../hostile/process-watch.ts'
import { scrape } from '../../support/api/metrics.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { openRawTunnel, startStandaloneEdge } from '../../support/edges/standalone-edge.ts'
import { type Edge, fetchHost } from '../../support/edges/tunnels.ts'
import { freePort } from '../../support/processes/ports.ts'
import { until } from '../../support/until.ts'

const MIB = 1024 * 1024
const WORKSPACE_BYTES_MAX = 64 * MIB
/** What may arrive before those beyond the limit are evicted. */
const OVERSHOOT_BYTES = MIB
/** Twice the bytes, because they may be parts of larger buffers, and the memory of connections and of V8. */
const GROWTH_MAX_MB = 2 * 64 + 150
const PER_TUNNEL = 400
const BODY = Buffer.alloc(8 * MIB, 'x')
const SMALL = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

async function startAttackedEdge(t: Test, slugs: string[], env: Record<string, string> = {}) {
  const port = await freePort()
  const started = await startStandaloneEdge(t, slugs, { ADIT_METRICS_PORT: String(port), ...env })
  const read = async (series: string) => (await scrape(`http://127.0.0.1:${port}/metrics`)).get(series) ?? 0
  const watched = watchProcess('edge', started.edge)
  let largest = 0
  return {
    ...started,
    /** The bytes that the edge buffers now. */
    async buffered() {
      const bytes = await read('adit_edge_buffered_bytes')
      largest = Math.max(largest, bytes)
      return bytes
    },
    largestBuffered: () => largest,
    evicted: () => read('adit_edge_evicted_total{reason="memory"}'),
    rssMb: () => watched.usage()?.rssMb ?? 0,
  }
}

/** A tunnel client whose local server sends as many bytes as the path says. */
async function openLargeTunnel(t: Test, edge: Edge, key: string, name: string) {
  const tunnel = await openRawTunnel(edge, key, { name })
  atEnd(t, () => tunnel.close())
  tunnel.onStream((stream) =>
    stream.on('data', (request: Buffer) => {
      const [, bytes] = /^GET \/(\d+)/.exec(String(request)) ?? []
      if (bytes === undefined) return void stream.write(SMALL)
      stream.write(`HTTP/1.1 200 OK\r\nContent-Length: ${bytes}\r\n\r\n`)
      stream.write(BODY.subarray(0, Number(bytes)))
    }),
  )
  return tunnel
}

/** Sends the bytes on many connections, whose responses nobody reads. */
function startSilent(t: Test, port: number, count: number, bytes: (index: number) => string): Socket[] {
  const sockets = Array.from({ length: count }, (_, index) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    socket.pause()
    socket.write(bytes(index))
    return socket
  })
  atEnd(t, () => {
    for (const socket of sockets) socket.destroy()
  })
  return sockets
}

const getLarge = (host: string, client: string) =>
  `GET /${BODY.length} HTTP/1.1\r\nHost: ${host}\r\nX-Forwarded-For: ${client}\r\n\r\n`

test('clients that do not read use a bounded amount of memory, and others are served meanwhile', async (t) => {
  const attacked = await startAttackedEdge(t, ['acme', 'other'])
  const { edge, keys, buffered, evicted } = attacked
  const tunnels = await Promise.all(
    ['a', 'b'].map((name) => openLargeTunnel(t, edge, keys[0] as string, name)),
  )
  const other = await openLargeTunnel(t, edge, keys[1] as string, 'c')
  const before = attacked.rssMb()
  for (const { host } of tunnels)
    startSilent(t, edge.port, PER_TUNNEL, (index) => getLarge(host, `203.0.113.${index % 4}`))
  await until('some are evicted', async () => (await buffered()) >= 0 && (await evicted()) > 0, 120_000)
  for (const { host } of [...tunnels, other]) {
    const visitor = { headers: { 'x-forwarded-for': '198.51.100.1' } }
    for (let round = 0; round < 5; round += 1) {
      assert.equal(String((await fetchHost(edge, host, visitor)).body), 'ok')
      assert.equal((await fetchHost(edge, host, { path: `/${MIB}`, ...visitor })).body.length, MIB)
      await buffered()
    }
  }
  const largest = attacked.largestBuffered()
  assert.ok(largest > WORKSPACE_BYTES_MAX / 2, `${largest} bytes`)
  assert.ok(largest <= WORKSPACE_BYTES_MAX + OVERSHOOT_BYTES, `${largest} bytes`)
  const growth = attacked.rssMb() - before
  assert.ok(growth < GROWTH_MAX_MB, `${growth} MB more`)
})

test('uploads and upgrades that the local server does not read use a bounded amount of memory', async (t) => {
  const attacked = await startAttackedEdge(t, ['acme'])
  const { edge, keys, buffered, evicted } = attacked
  const tunnel = await openRawTunnel(edge, keys[0] as string)
  atEnd(t, () => tunnel.close())
  tunnel.onStream((stream) => {
    stream.once('data', (request: Buffer) => {
      if (String(request).includes('Upgrade: x'))
        stream.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n')
      stream.pause()
    })
  })
  const before = attacked.rssMb()
  const heads = ['Content-Length: 100000000\r\n', 'Connection: Upgrade\r\nUpgrade: x\r\n']
  const body = 'x'.repeat(2 * MIB)
  startSilent(
    t,
    edge.port,
    PER_TUNNEL,
    (index) =>
      `POST /upload HTTP/1.1\r\nHost: ${tunnel.host}\r\nX-Forwarded-For: 203.0.113.${index % 4}\r\n` +
      `${heads[index % 2]}\r\n${body}`,
  )
  await until('some are evicted', async () => (await buffered()) >= 0 && (await evicted()) > 0, 120_000)
  tunnel.onStream((stream) => stream.on('data', () => stream.write(SMALL)))
  const visitor = { headers: { 'x-forwarded-for': '198.51.100.1' } }
  for (let round = 0; round < 20; round += 1) {
    assert.equal(String((await fetchHost(edge, tunnel.host, visitor)).body), 'ok')
    await buffered()
  }
  const largest = attacked.largestBuffered()
  assert.ok(largest <= WORKSPACE_BYTES_MAX + OVERSHOOT_BYTES, `${largest} bytes`)
  const growth = attacked.rssMb() - before
  assert.ok(growth < GROWTH_MAX_MB, `${growth} MB more`)
})

test('chunks of one byte count with the memory that they take', async (t) => {
  const attacked = await startAttackedEdge(t, ['acme'])
  const { edge, keys, evicted } = attacked
  const tunnel = await openRawTunnel(edge, keys[0] as string)
  atEnd(t, () => tunnel.close())
  tunnel.onStream((stream) => stream.once('data', () => stream.pause()))
  const before = attacked.rssMb()
  const chunks = '1\r\nx\r\n'.repeat(100_000)
  startSilent(
    t,
    edge.port,
    100,
    () => `POST / HTTP/1.1\r\nHost: ${tunnel.host}\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`,
  )
  await until('most are evicted', async () => (await evicted()) > 80)
  // The parsed chunks of evicted requests are garbage that V8 collects a little later.
  await until('the memory is within its bound', async () => {
    await evicted()
    return attacked.rssMb() - before < GROWTH_MAX_MB
  })
})

test('when all are closed, nothing is accounted for', async (t) => {
  const { edge, keys, buffered } = await startAttackedEdge(t, ['acme'])
  const { host } = await openLargeTunnel(t, edge, keys[0] as string, 'a')
  const silent = startSilent(t, edge.port, 50, () => getLarge(host, '203.0.113.1'))
  await until('much is buffered', async () => (await buffered()) > 10 * MIB)
  for (const socket of silent) socket.destroy()
  await Promise.all(silent.map((socket) => socket.closed || once(socket, 'close')))
  await until('nothing is buffered', async () => (await buffered()) === 0)
})
