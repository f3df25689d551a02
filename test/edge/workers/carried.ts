// What visitors get through an edge with several workers: downloads, WebSockets and TCP connections, some at
// the worker that has the client, and some at others.
import assert from 'node:assert/strict'
import { get } from 'node:http'
import { connect, createServer } from 'node:net'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { type Edge, openSocket } from '../../support/edges/tunnels.ts'
import { listen } from '../../support/network/listen.ts'
import { until } from '../../support/until.ts'

/** Of each kind. Practically never do all reach the same one of two workers. */
const COUNT = 10
/** What the kernel had received for a visitor may be read later. */
const BUFFERED_BYTES = 300_000

interface Visit {
  bytes: number
  isClosed: boolean
}

const ignoreReset = (error: NodeJS.ErrnoException) => assert.equal(error.code, 'ECONNRESET')

function startDownload(edge: Pick<Edge, 'port'>, host: string): Visit {
  const visit = { bytes: 0, isClosed: false }
  const close = () => {
    visit.isClosed = true
  }
  get({ port: edge.port, path: '/drip/100000', headers: { host }, agent: false }, (response) => {
    response.on('data', (chunk: Buffer) => {
      visit.bytes += chunk.length
    })
    response.on('error', ignoreReset).on('close', close)
  }).on('error', close)
  return visit
}

async function startSocket(t: Test, edge: Edge, host: string): Promise<Visit> {
  const visit = { bytes: 0, isClosed: false }
  const socket = await openSocket(edge, host)
  const timer = setInterval(() => socket.readyState === socket.OPEN && socket.send('x'), 5)
  atEnd(t, () => clearInterval(timer))
  socket.on('message', () => {
    visit.bytes += 1
  })
  socket.on('error', ignoreReset).on('close', () => {
    visit.isClosed = true
  })
  return visit
}

async function startConnection(t: Test, port: number): Promise<Visit> {
  const visit = { bytes: 0, isClosed: false }
  const socket = connect(port, '127.0.0.1')
  const timer = setInterval(() => socket.write('x'), 5)
  atEnd(t, () => {
    clearInterval(timer)
    socket.destroy()
  })
  socket.on('data', (chunk) => {
    visit.bytes += chunk.length
  })
  socket.on('error', () => {})
  socket.on('close', () => {
    clearInterval(timer)
    visit.isClosed = true
  })
  await new Promise((resolve) => socket.once('connect', resolve))
  return visit
}

/** Port of a local server for a TCP tunnel. */
export const startEcho = (t: Test) =>
  listen(
    t,
    createServer((socket) => socket.on('error', () => {}).pipe(socket)),
  )

/** Resolves when bytes flow on each. Without a TCP port there are no TCP connections. */
export async function startVisits(t: Test, edge: Edge, host: string, tcpPort?: number) {
  const visits: Visit[] = []
  for (let each = 0; each < COUNT; each += 1) {
    visits.push(startDownload(edge, host), await startSocket(t, edge, host))
    if (tcpPort !== undefined) visits.push(await startConnection(t, tcpPort))
  }
  await until('bytes flow', () => visits.every(({ bytes }) => bytes > 0))
  return {
    bytes: () => visits.map(({ bytes }) => bytes),
    closed: () => visits.filter(({ isClosed }) => isClosed).length,
    /** Call it at the response to a revocation, and again for later tunnels of the key. */
    async assertOver(before: number[], buffered = BUFFERED_BYTES): Promise<void> {
      await until('all is closed', () => visits.every(({ isClosed }) => isClosed))
      for (const [index, { bytes }] of visits.entries()) {
        const after = bytes - (before[index] as number)
        assert.ok(after <= buffered, `${after} bytes after the response`)
      }
    },
  }
}
