// Opens connections to the target of a tunnel: a TCP port with or without TLS, or a Unix socket.
import { lookup } from 'node:dns/promises'
import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { ConnectProblem } from '../tunnel-protocol/problems.ts'

const CONNECT_TIMEOUT_MS = 5_000
/** Many development servers listen on only one of them, and resolvers differ in which they return. */
const LOCALHOST = ['127.0.0.1', '::1']

export interface TlsOptions {
  /** Certificates in PEM that are trusted instead of those of the system. */
  readonly ca?: string | undefined
  /** Any certificate is accepted. */
  readonly isInsecure: boolean
}

export type Target =
  | { readonly path: string }
  | { readonly host: string; readonly port: number; readonly tls?: TlsOptions | undefined }

interface DialHandlers {
  onConnect(socket: Socket): void
  onError(error: Error): void
}

export class Dialer {
  readonly #target: Target
  /** The address that worked last is the first. */
  #addresses: readonly string[] | undefined
  #resolving: Promise<readonly string[]> | undefined

  constructor(target: Target) {
    this.#target = target
  }

  /** Calls one of the handlers, unless the returned function is called before: it cancels the attempt. */
  dial(handlers: DialHandlers): () => void {
    const attempt = new Attempt(this.#target, handlers, (addresses) => {
      this.#addresses = addresses
    })
    if ('path' in this.#target) attempt.start([this.#target.path])
    else if (this.#addresses) attempt.start(this.#addresses)
    else
      this.#resolve(this.#target.host).then(
        (addresses) => attempt.start(addresses),
        (error) => attempt.fail(error),
      )
    return () => attempt.cancel()
  }

  #resolve(host: string): Promise<readonly string[]> {
    this.#resolving ??= resolveHost(host).finally(() => {
      this.#resolving = undefined
    })
    return this.#resolving
  }
}

/** Called with the addresses, in the order for the next attempt; undefined to resolve them again. */
type OnAddresses = (addresses: readonly string[] | undefined) => void

/** Tries the addresses one after the other. */
class Attempt {
  readonly #target: Target
  readonly #handlers: DialHandlers
  readonly #onAddresses: OnAddresses
  #socket: Socket | undefined
  #timer: NodeJS.Timeout | undefined
  #isCanceled = false

  constructor(target: Target, handlers: DialHandlers, onAddresses: OnAddresses) {
    this.#target = target
    this.#handlers = handlers
    this.#onAddresses = onAddresses
  }

  start(addresses: readonly string[]): void {
    this.#try(addresses, 0, undefined)
  }

  fail(error: Error): void {
    // The name may have other addresses by now.
    this.#onAddresses(undefined)
    if (!this.#isCanceled) this.#handlers.onError(error)
  }

  cancel(): void {
    this.#isCanceled = true
    clearTimeout(this.#timer)
    this.#socket?.destroy()
  }

  #try(addresses: readonly string[], index: number, firstError: Error | undefined): void {
    if (this.#isCanceled) return
    const address = addresses[index] as string
    const { socket, readyEvent } = open(this.#target, address)
    this.#socket = socket
    const onError = (error: Error) => {
      clearTimeout(this.#timer)
      if (index + 1 < addresses.length) this.#try(addresses, index + 1, firstError ?? error)
      else this.fail(firstError ?? error)
    }
    this.#timer = setTimeout(() => socket.destroy(timeoutError(address)), CONNECT_TIMEOUT_MS)
    socket.once('error', onError)
    socket.once(readyEvent, () => {
      clearTimeout(this.#timer)
      socket.off('error', onError)
      this.#onAddresses([address, ...addresses.filter((other) => other !== address)])
      this.#handlers.onConnect(socket)
    })
  }
}

function open(target: Target, address: string): { socket: Socket; readyEvent: 'connect' | 'secureConnect' } {
  if ('path' in target)
    return { socket: connect({ path: address, allowHalfOpen: true }), readyEvent: 'connect' }
  const { host, port, tls } = target
  const endpoint = { host: address, port, allowHalfOpen: true }
  if (!tls) return { socket: connect({ ...endpoint, noDelay: true }), readyEvent: 'connect' }
  const socket = connectTls({
    ...endpoint,
    // SNI takes no IP addresses.
    ...(isIP(host) === 0 && { servername: host }),
    ALPNProtocols: ['http/1.1'],
    rejectUnauthorized: !tls.isInsecure,
    ...(tls.ca !== undefined && { ca: tls.ca }),
  })
  socket.setNoDelay(true)
  return { socket, readyEvent: 'secureConnect' }
}

async function resolveHost(host: string): Promise<readonly string[]> {
  if (host === 'localhost') return LOCALHOST
  if (isIP(host)) return [host]
  return (await lookup(host, { all: true })).map(({ address }) => address)
}

const timeoutError = (address: string) =>
  new Error(`no connection to ${address} within ${CONNECT_TIMEOUT_MS / 1000} seconds`)

/** What an error of `onError` means. */
export function toProblem({ code = '', message }: NodeJS.ErrnoException): ConnectProblem {
  if (/CERT|SELF_SIGNED|^UNABLE_TO_|^HOSTNAME_MISMATCH$/.test(code)) return 'certificate'
  const isPlain = /wrong version number|packet length too long|before secure TLS connection/.test(message)
  return isPlain ? 'no_tls' : 'unreachable'
}
