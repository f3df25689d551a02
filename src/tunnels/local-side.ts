// What comes out of a tunnel, and goes on to a local server.
import { createServer, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { refuseUpgrade, refuseVisitor } from './answers.ts'
import { mayUpgrade, type Passage, passOn, passUpgrade } from './pass-on.ts'

/** What proxies call it when whoever asked was gone before the answer came. */
const GONE = 499

export interface Passed {
  readonly method: string
  readonly path: string
  /** 101 for what goes on as a WebSocket, or the like. */
  readonly status: number
  readonly ms: number
}

export interface LocalOptions {
  /** Where the local server is. */
  readonly host: string
  readonly port: number
  onPassed(passed: Passed): void
}

/** What the edge asks is read by Node's own server, which is just given the connections. */
export function createLocalSide({ host, port, onPassed }: LocalOptions) {
  const requestListeners = new WeakMap<object, () => void>()
  const server = createServer({
    keepAliveTimeout: 0,
    headersTimeout: 0,
    requestTimeout: 0,
    shouldUpgradeCallback: mayUpgrade,
  })
  const absence = `Nothing answers at ${host}:${port}, where this tunnel leads.`

  /** What hands a request on: it is told of once, when it is answered. */
  function passageFor(
    request: IncomingMessage,
    refuse: Passage['refuse'],
  ): Required<Pick<Passage, 'onAnswered'>> & Passage {
    const began = performance.now()
    let isTold = false
    const onAnswered = (status: number) => {
      const { method = '', url = '' } = request
      if (!isTold) onPassed({ method, path: url, status, ms: performance.now() - began })
      isTold = true
    }
    requestListeners.get(request.socket)?.()
    return {
      to: { agent: false, host, port },
      onAnswered,
      refuse(status) {
        onAnswered(status)
        refuse(status)
      },
    }
  }

  server.on('request', (request, response) => {
    const passage = passageFor(request, (status) => refuseVisitor(response, status, absence))
    response.once('close', () => passage.onAnswered(GONE))
    passOn(request, response, passage)
  })
  server.on('upgrade', (request, socket, early) => {
    const passage = passageFor(request, (status) => refuseUpgrade(socket, status, absence))
    passUpgrade(request, socket, early, passage)
  })
  return {
    serve(socket: Socket, onRequest: () => void): void {
      requestListeners.set(socket, onRequest)
      server.emit('connection', socket)
    },
  }
}
