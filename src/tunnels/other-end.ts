// The other end of a tunnel: opens it at an edge, keeps connections to the edge, and hands on what comes over them to a local
// server. It comes back by itself when the edge or the network was away, and ends only when the edge refuses it.
import { createServer, type IncomingMessage, request as requestPlainly } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { refuseUpgrade, refuseVisitor } from './answers.ts'
import { type Passage, passOn, passUpgrade } from './pass-on.ts'
import { authorizationOf, CONNECTION_PATH, type Opened, TUNNELS_PATH, UPGRADE } from './protocol.ts'

/** As many connections wait for a request; as soon as one has got one, another is made. */
const SPARE = 4
const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 10_000
const ANSWER_WITHIN_MS = 10_000
const PROBE_AFTER_MS = 15_000
/** What proxies call it when whoever asked was gone before the answer came. */
const GONE = 499

/** The edge will not have it, and trying again would not help. */
export class TunnelRefused extends Error {
  override name = 'TunnelRefused'
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

export interface Passed {
  readonly method: string
  readonly path: string
  /** 101 for what goes on as a WebSocket, or the like. */
  readonly status: number
  readonly ms: number
}

export interface OtherEndOptions {
  /** The edge's address. */
  readonly edge: string
  readonly key: string
  readonly name: string | undefined
  /** Where the local server is. */
  readonly host: string
  readonly port: number
  readonly signal: AbortSignal
  /** Each time that it is open, also again. */
  onOpen(opened: Opened): void
  onLost(why: string): void
  onPassed(passed: Passed): void
}

/** Ends when the signal says so; throws a TunnelRefused where the edge does. */
export async function holdTunnel(options: OtherEndOptions): Promise<void> {
  const { signal } = options
  const local = createLocalSide(options)
  let opened: Opened | undefined
  let pause = 0
  /** Told when it is known what became of it: a tunnel whose key was revoked is refused at once, and that is all to say. */
  let loss: string | undefined
  while (!signal.aborted) {
    await sleep(pause, undefined, { signal }).catch(() => undefined)
    if (signal.aborted) break
    try {
      // The edge finds it by its name and its secret, should it not know yet that the connections are gone.
      const name: string | undefined = opened?.name ?? options.name
      const current: Opened = await open(options, { name, secret: opened?.id })
      opened = current
      loss = await keepConnections(options, current, local, () => {
        if (loss !== undefined) options.onLost(loss)
        options.onOpen(current)
        pause = 0
      })
    } catch (error) {
      if (error instanceof TunnelRefused) throw error
      if (signal.aborted) break
      options.onLost(loss ?? (error as Error).message)
      loss = undefined
      pause = Math.min(Math.max(pause, FIRST_PAUSE_MS) * 2, LONGEST_PAUSE_MS)
    }
  }
  if (opened) await close(options.edge, opened.id)
}

interface Wish {
  name: string | undefined
  secret: string | undefined
}

async function open({ edge, key, signal }: OtherEndOptions, wish: Wish): Promise<Opened> {
  const response = await ask(edge, 'POST', `Bearer ${key}`, JSON.stringify(wish), signal)
  const said = (await response.json().catch(() => undefined)) as
    | (Opened & { error?: string; message?: string })
    | undefined
  if (response.status === 201 && typeof said?.id === 'string' && typeof said.url === 'string') return said
  const words =
    said?.message ?? `It answered ${response.status}, as no edge of Adit does. Is the address right?`
  // A proxy in front of it says so too while the edge starts anew.
  if (response.status >= 500) throw new Error(words)
  throw new TunnelRefused(said?.error ?? 'no_edge', words)
}

/** It would be closed soon anyway, so nobody waits long for an edge that is away. */
async function close(edge: string, id: string): Promise<void> {
  await ask(edge, 'DELETE', authorizationOf(id), undefined, AbortSignal.timeout(1_000)).catch(() => undefined)
}

async function ask(
  edge: string,
  method: string,
  authorization: string,
  body: string | undefined,
  signal: AbortSignal,
): Promise<Response> {
  try {
    return await fetch(edge + TUNNELS_PATH, {
      method,
      headers: { authorization, 'content-type': 'application/json' },
      redirect: 'error',
      signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_WITHIN_MS)]),
      ...(body !== undefined && { body }),
    })
  } catch (error) {
    const { cause = error } = error as { cause?: { message?: string; code?: string } }
    const { message, code } = cause as { message?: string; code?: string }
    throw new Error(`The edge at ${edge} cannot be reached: ${message || code}.`)
  }
}

/** Keeps some spare connections until none is left and none can be made; says why, or throws where there never was one. */
function keepConnections(
  { edge, signal }: OtherEndOptions,
  { id, connections: most }: Opened,
  local: LocalSide,
  onFirst: () => void,
): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const all = new Set<Socket>()
  const busy = new Set<Socket>()
  let connecting = 0
  let wasConnected = false
  let isOver = false

  function end(why: string): void {
    isOver = true
    for (const socket of all) socket.destroy()
    signal.removeEventListener('abort', leave)
    if (wasConnected) resolve(why)
    else reject(new Error(why))
  }
  const leave = () => end('It was closed.')

  function refill(): void {
    while (!isOver && all.size - busy.size + connecting < SPARE && all.size + connecting < most) {
      connecting += 1
      connect(edge, id).then(
        (socket) => {
          connecting -= 1
          if (isOver) socket.destroy()
          else keep(socket)
        },
        (error: Error) => {
          connecting -= 1
          // As long as one is left, that one will tell when all is over.
          if (all.size === 0 && connecting === 0) end(error.message)
        },
      )
    }
  }
  function keep(socket: Socket): void {
    if (!wasConnected) onFirst()
    wasConnected = true
    all.add(socket)
    socket.once('close', () => {
      all.delete(socket)
      busy.delete(socket)
      refill()
    })
    local.serve(socket, {
      onBusy() {
        busy.add(socket)
        refill()
      },
      onIdle: () => busy.delete(socket),
    })
  }

  signal.addEventListener('abort', leave)
  refill()
  return promise
}

/** One connection, on which from then on the edge asks and we answer. */
async function connect(edge: string, id: string): Promise<Socket> {
  const url = new URL(edge + CONNECTION_PATH)
  const { request } = url.protocol === 'https:' ? await import('node:https') : { request: requestPlainly }
  return new Promise((resolve, reject) => {
    const asked = request(url, {
      agent: false,
      headers: { connection: 'Upgrade', upgrade: UPGRADE, authorization: authorizationOf(id) },
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    })
    asked.on('upgrade', (_answer, socket, early) => {
      socket.setNoDelay(true)
      socket.setKeepAlive(true, PROBE_AFTER_MS)
      socket.on('error', () => socket.destroy())
      if (early.length > 0) socket.unshift(early)
      resolve(socket)
    })
    asked.on('response', (answer) => {
      answer.resume()
      reject(new Error(`The edge does not know the tunnel any more (${answer.statusCode}).`))
    })
    asked.on('error', (error) =>
      reject(new Error(`The edge at ${edge} cannot be reached: ${error.message}.`)),
    )
    asked.end()
  })
}

interface LocalSide {
  serve(socket: Socket, on: { onBusy(): void; onIdle(): void }): void
}

/** What the edge asks is read by Node's own server, which is just given the connections. */
function createLocalSide({ host, port, onPassed }: OtherEndOptions): LocalSide {
  const watched = new WeakMap<object, { onBusy(): void; onIdle(): void }>()
  const server = createServer({ keepAliveTimeout: 0, headersTimeout: 0, requestTimeout: 0 })
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
    watched.get(request.socket)?.onBusy()
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
    response.once('close', () => {
      passage.onAnswered(GONE)
      watched.get(request.socket)?.onIdle()
    })
    passOn(request, response, passage)
  })
  server.on('upgrade', (request, socket, early) => {
    const passage = passageFor(request, (status) => refuseUpgrade(socket, status, absence))
    passUpgrade(request, socket, early, passage)
  })
  return {
    serve(socket, on) {
      watched.set(socket, on)
      server.emit('connection', socket)
    },
  }
}
