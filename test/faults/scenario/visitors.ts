// A local server that says when it created what it sends, and visitors of its tunnels, who record what they
// receive, at whichever edge.
import { createServer, get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket, WebSocketServer } from 'ws'
import type { Test } from '../../support/cleanup.ts'
import type { Edge } from '../../support/edges/tunnels.ts'
import { listen } from '../../support/network/listen.ts'
import type { Random } from '../../support/random.ts'
import type { Carried } from '../checker/carried.ts'
import type { Workers } from './workers.ts'

const STEP_MS = 10
const AGAIN_MS = 60
/** Fills buffers on the way, so that there is something left in a stopped edge. */
const PADDING = 'x'.repeat(20_000)

/** `/stream` never ends; other requests get a short response. WebSockets echo. */
export async function startTimedServer(t: Test): Promise<number> {
  const server = createServer((request, response) => {
    if (request.url !== '/stream') return void response.end('ok')
    const timer = setInterval(() => response.write(`${performance.now()} ${PADDING}\n`), STEP_MS)
    response.on('close', () => clearInterval(timer))
  })
  new WebSocketServer({ server }).on('connection', (socket) => {
    socket.on('error', () => socket.terminate())
    socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
  })
  return listen(t, server)
}

interface VisitorsOptions {
  readonly edges: readonly { name: string; edge: Pick<Edge, 'port'> }[]
  readonly workers: Workers
  readonly carried: Carried[]
  readonly random: Random
}

/** Visitors of one tunnel, until the returned function is called. */
export function startVisitors(
  { edges, workers, carried, random }: VisitorsOptions,
  { keyId, host }: { keyId: string; host: string },
): () => void {
  let isOver = false
  const record = (edge: string, what: Carried['what'], sentMs: number) =>
    carried.push({ keyId, edge, what, sentMs, receivedMs: performance.now() })

  const download = ({ name, edge }: VisitorsOptions['edges'][number]) =>
    new Promise<void>((resolve) => {
      const sentMs = performance.now()
      const { port } = edge
      const request = get({ port, path: '/stream', headers: { host }, agent: false }, (response) => {
        // A response that begins is one to a request, too.
        if (response.statusCode === 200) record(name, 'request', sentMs)
        let rest = ''
        response.on('data', (chunk: Buffer) => {
          const lines = (rest + chunk).split('\n')
          rest = lines.pop() ?? ''
          for (const line of lines)
            if (response.statusCode === 200) record(name, 'download', Number.parseFloat(line))
          if (isOver) response.destroy()
        })
        response.on('error', () => undefined)
        response.on('close', resolve)
      })
      request.on('error', () => resolve())
    })

  const echo = ({ name, edge }: VisitorsOptions['edges'][number]) =>
    new Promise<void>((resolve) => {
      const socket = new WebSocket(`ws://127.0.0.1:${edge.port}/`, { headers: { host } })
      const timer = setInterval(() => {
        if (isOver) socket.terminate()
        else if (socket.readyState === WebSocket.OPEN) socket.send(String(performance.now()))
      }, STEP_MS)
      socket.on('message', (data) => record(name, 'websocket', Number(data)))
      socket.on('error', () => undefined)
      socket.on('close', () => {
        clearInterval(timer)
        resolve()
      })
    })

  const ask = ({ name, edge }: VisitorsOptions['edges'][number]) =>
    new Promise<void>((resolve) => {
      const sentMs = performance.now()
      const { port } = edge
      const request = get(
        { port, path: '/', headers: { host }, agent: false, timeout: 2_000 },
        (response) => {
          if (response.statusCode === 200) record(name, 'request', sentMs)
          response
            .resume()
            .on('error', () => undefined)
            .on('close', resolve)
        },
      )
      request.on('timeout', () => request.destroy())
      request.on('error', () => resolve())
    })

  for (const visit of [download, echo, ask])
    workers.run(
      (async () => {
        for (; !isOver; await sleep(AGAIN_MS)) await visit(random.pick(edges))
      })(),
    )
  return () => {
    isOver = true
  }
}
