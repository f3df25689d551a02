// The tunnel client: opens a tunnel at an edge and keeps it open. Reconnects with backoff when the edge or
// the network fails, and stops only when the edge rejects the tunnel.
import { setTimeout as sleep } from 'node:timers/promises'
import { formatAuthorization, type Opened, type OpenedJson, TUNNELS_PATH } from '../protocol.ts'
import { maintainConnections } from './connections.ts'
import { createLocalProxy, type LocalServerOptions } from './local-server.ts'

const BACKOFF_MIN_MS = 250
const BACKOFF_MAX_MS = 3_000
/** A tunnel that was open for longer resets the backoff. */
const STABLE_AFTER_MS = 1_000
const REQUEST_TIMEOUT_MS = 10_000
const CLOSE_TIMEOUT_MS = 1_000
const BODY_CHARS_MAX = 64 * 1024

/** The edge rejected the tunnel; a retry would not help. */
export class TunnelRejected extends Error {
  override name = 'TunnelRejected'
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

export interface TunnelOptions extends LocalServerOptions {
  /** Base URL of the edge. */
  readonly edge: string
  readonly key: string
  readonly name: string | undefined
  readonly signal: AbortSignal
  /** Called each time the tunnel is open, also after a reconnection. */
  onOpen(opened: Opened): void
  onLost(reason: string): void
}

/** Resolves when the signal is aborted. Rejects with TunnelRejected if the edge rejects the tunnel. */
export async function runTunnel(options: TunnelOptions): Promise<void> {
  const { signal } = options
  const local = createLocalProxy(options)
  let opened: Opened | undefined
  let backoffMs = 0
  /**
   * Reported only after the next attempt: if the key was revoked, that attempt is rejected with the actual
   * reason.
   */
  let lossReason: string | undefined
  while (!signal.aborted) {
    // Jitter, so that clients do not reconnect simultaneously after a restart of the edge.
    await sleep(backoffMs * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => undefined)
    if (signal.aborted) break
    try {
      // The secret reclaims the name if the edge has not noticed yet that the connections are lost.
      const name: string | undefined = opened?.name ?? options.name
      const current: Opened = await open(options, { name, secret: opened?.secret })
      opened = current
      const openedAt = performance.now()
      lossReason = await maintainConnections({
        edge: options.edge,
        opened: current,
        serve: local.serve,
        signal,
        onFirst() {
          if (lossReason !== undefined) options.onLost(lossReason)
          options.onOpen(current)
        },
      })
      backoffMs = performance.now() - openedAt > STABLE_AFTER_MS ? 0 : nextBackoff(backoffMs)
    } catch (error) {
      if (error instanceof TunnelRejected) throw error
      if (signal.aborted) break
      options.onLost(lossReason ?? (error as Error).message)
      lossReason = undefined
      backoffMs = nextBackoff(backoffMs)
    }
  }
  if (opened) await close(options.edge, opened.secret)
}

const nextBackoff = (backoffMs: number) => Math.min(Math.max(backoffMs, BACKOFF_MIN_MS) * 2, BACKOFF_MAX_MS)

interface OpenRequest {
  name: string | undefined
  secret: string | undefined
}

async function open({ edge, key, signal }: TunnelOptions, request: OpenRequest): Promise<Opened> {
  const response = await send(edge, 'POST', `Bearer ${key}`, JSON.stringify(request), signal)
  const body = await readBody(response)
  if (response.status === 201 && isOpened(body)) {
    const { id: secret, ...rest } = body
    return { secret, ...rest }
  }
  const message =
    body?.message && response.status !== 404
      ? `The edge at ${edge} ${request.secret ? 'closed' : 'rejected'} the tunnel: ${lowerFirst(body.message)}`
      : `${edge} is not an Adit edge (HTTP ${response.status}). Check --edge.`
  // Retried: a proxy in front of the edge responds with 5xx while the edge restarts.
  if (response.status >= 500) throw new Error(message)
  throw new TunnelRejected(body?.error ?? 'no_edge', message)
}

/** For a sentence after a colon; an acronym stays as it is. */
const lowerFirst = (sentence: string) =>
  sentence.replace(/^[A-Z](?=[a-z ])/, (letter) => letter.toLowerCase())

const isOpened = (body: Partial<OpenedJson> | undefined): body is OpenedJson =>
  typeof body?.id === 'string' &&
  typeof body.name === 'string' &&
  typeof body.host === 'string' &&
  typeof body.url === 'string' &&
  Number.isInteger(body.connections)

/** Limited, because the URL may belong to any server. */
async function readBody(response: Response) {
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true })
    if (text.length > BODY_CHARS_MAX) return undefined
  }
  try {
    return JSON.parse(text) as Partial<OpenedJson> & { error?: string; message?: string }
  } catch {
    return undefined
  }
}

/** Best effort: without it the edge closes the tunnel seconds after its last connection. */
async function close(edge: string, secret: string): Promise<void> {
  const signal = AbortSignal.timeout(CLOSE_TIMEOUT_MS)
  await send(edge, 'DELETE', formatAuthorization(secret), undefined, signal).catch(() => undefined)
}

async function send(
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
      signal: AbortSignal.any([signal, AbortSignal.timeout(REQUEST_TIMEOUT_MS)]),
      ...(body !== undefined && { body }),
    })
  } catch (error) {
    const { cause = error } = error as { cause?: { message?: string; code?: string } }
    const { message, code } = cause as { message?: string; code?: string }
    throw new Error(`The edge at ${edge} cannot be reached: ${message || code}.`)
  }
}
