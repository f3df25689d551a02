// The other end of a tunnel: opens it at an edge, and holds it. It comes back by itself when the edge or the network was away,
// and ends only when the edge refuses it.
import { setTimeout as sleep } from 'node:timers/promises'
import { authorizationOf, type Opened, TUNNELS_PATH } from '../protocol.ts'
import { keepConnections } from './connections.ts'
import { createLocalSide, type LocalOptions } from './local-server.ts'

const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 3_000
/** A tunnel that was open for that long has not been closed for its opening. */
const SETTLED_MS = 1_000
const ANSWER_WITHIN_MS = 10_000
const ANSWER_CHARS_MAX = 64 * 1024

/** The edge will not have it, and trying again would not help. */
export class TunnelRefused extends Error {
  override name = 'TunnelRefused'
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

export interface TunnelOptions extends LocalOptions {
  /** The edge's address. */
  readonly edge: string
  readonly key: string
  readonly name: string | undefined
  readonly signal: AbortSignal
  /** Each time that it is open, also again. */
  onOpen(opened: Opened): void
  onLost(why: string): void
}

/** Ends when the signal says so; throws a TunnelRefused where the edge does. */
export async function runTunnel(options: TunnelOptions): Promise<void> {
  const { signal } = options
  const local = createLocalSide(options)
  let opened: Opened | undefined
  let pause = 0
  /** Told when it is known what became of it: a tunnel whose key was revoked is refused at once, and that is all to say. */
  let loss: string | undefined
  while (!signal.aborted) {
    // Not all at once, where an edge with many of them has started anew.
    await sleep(pause * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => undefined)
    if (signal.aborted) break
    try {
      // The edge finds it by its name and its secret, should it not know yet that the connections are gone.
      const name: string | undefined = opened?.name ?? options.name
      const current: Opened = await open(options, { name, secret: opened?.id })
      opened = current
      const began = performance.now()
      loss = await keepConnections({
        edge: options.edge,
        opened: current,
        serve: local.serve,
        signal,
        onFirst() {
          if (loss !== undefined) options.onLost(loss)
          options.onOpen(current)
        },
      })
      pause = performance.now() - began > SETTLED_MS ? 0 : nextBackoff(pause)
    } catch (error) {
      if (error instanceof TunnelRefused) throw error
      if (signal.aborted) break
      options.onLost(loss ?? (error as Error).message)
      loss = undefined
      pause = nextBackoff(pause)
    }
  }
  if (opened) await close(options.edge, opened.id)
}

const nextBackoff = (pause: number) => Math.min(Math.max(pause, FIRST_PAUSE_MS) * 2, LONGEST_PAUSE_MS)

interface OpenRequest {
  name: string | undefined
  secret: string | undefined
}

async function open({ edge, key, signal }: TunnelOptions, wish: OpenRequest): Promise<Opened> {
  const response = await ask(edge, 'POST', `Bearer ${key}`, JSON.stringify(wish), signal)
  const said = await readAnswer(response)
  if (response.status === 201 && isOpened(said)) return said
  const words =
    said?.message && response.status !== 404
      ? `${edge} says: ${said.message}`
      : `${edge} answered ${response.status}, as no edge of Adit does. Is the address right?`
  // A proxy in front of it says so too while the edge starts anew.
  if (response.status >= 500) throw new Error(words)
  throw new TunnelRefused(said?.error ?? 'no_edge', words)
}

const isOpened = (said: Partial<Opened> | undefined): said is Opened =>
  typeof said?.id === 'string' &&
  typeof said.name === 'string' &&
  typeof said.host === 'string' &&
  typeof said.url === 'string' &&
  Number.isInteger(said.connections)

/** Whatever the address leads to may send anything. */
async function readAnswer(response: Response) {
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true })
    if (text.length > ANSWER_CHARS_MAX) return undefined
  }
  try {
    return JSON.parse(text) as Partial<Opened> & { error?: string; message?: string }
  } catch {
    return undefined
  }
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
