// Rewrites requests for a local server that expects its own host: Host, X-Forwarded-Host, X-Forwarded-Proto,
// Origin and Referer get the local origin instead of the tunnel's, and Location in responses is mapped back.
// All of them change together, because frameworks compare them to detect forged requests.
import { normalizeOrigin } from '../../../lib/net/host-header.ts'
import type { RequestHead } from '../../local-server/request.ts'

/** Matches scheme, authority and the rest of a URL. Does not match a URL with credentials. */
const ABSOLUTE_URL = /^(https?:)?(\/\/[^/?#@\\\s]*)((?:[/?#].*)?)$/is

interface HostRewriteOptions {
  /** The origin of the tunnel's public URL. */
  readonly publicOrigin: string
  /** The origin of the client's target. */
  readonly target: string
  /** The value of Host; the host of the target if undefined. */
  readonly host: string | undefined
}

export class HostRewrite {
  readonly #publicOrigin: string
  readonly #scheme: string
  readonly #host: string
  readonly #localOrigin: string
  /** The origins that the local server may use for itself in Location, with both schemes. */
  readonly #localOrigins: ReadonlySet<string | undefined>

  constructor({ publicOrigin, target, host }: HostRewriteOptions) {
    const url = new URL(target)
    this.#publicOrigin = publicOrigin
    this.#scheme = url.protocol.slice(0, -1)
    this.#host = host ?? url.host
    this.#localOrigin = `${this.#scheme}://${this.#host}`
    const { hostname } = new URL(this.#localOrigin)
    // Some servers append the port they listen on to the host of the request.
    const hosts = [this.#host, url.host, `${hostname}:${url.port || (this.#scheme === 'https' ? 443 : 80)}`]
    this.#localOrigins = new Set(
      hosts.flatMap((name) => [normalizeOrigin(`http://${name}`), normalizeOrigin(`https://${name}`)]),
    )
  }

  rewriteRequest(head: RequestHead): RequestHead {
    const headers: string[] = []
    for (let index = 0; index < head.headers.length; index += 2) {
      const name = head.headers[index] as string
      const value = this.#mapHeader(name.toLowerCase(), head.headers[index + 1] as string)
      if (value !== undefined) headers.push(name, value)
    }
    return { ...head, headers }
  }

  /** Maps Location back to the public origin. Headers are alternating names and values. */
  rewriteResponse(headers: readonly string[]): string[] {
    return headers.map((text, index) =>
      index % 2 === 1 && headers[index - 1]?.toLowerCase() === 'location' ? this.#mapLocation(text) : text,
    )
  }

  /** Undefined removes the header. */
  #mapHeader(name: string, value: string): string | undefined {
    switch (name) {
      case 'host':
      case 'x-forwarded-host':
        return this.#host
      case 'x-forwarded-proto':
        return this.#scheme
      case 'origin':
        return this.#mapUrl(value, 'null')
      case 'referer':
        return this.#mapUrl(value, undefined)
      default:
        return value
    }
  }

  /**
   * Maps the public origin to the local one. A visitor who sends the local origin is on a page of their own
   * machine, which the local server must not mistake for its own: the header becomes `ifLocal`.
   */
  #mapUrl(value: string, ifLocal: string | undefined): string | undefined {
    const [, scheme, authority, rest] = ABSOLUTE_URL.exec(value) ?? []
    if (scheme === undefined) return value
    const origin = normalizeOrigin(scheme + authority)
    if (origin === this.#publicOrigin) return this.#localOrigin + rest
    return origin !== undefined && this.#localOrigins.has(origin) ? ifLocal : value
  }

  #mapLocation(value: string): string {
    const [, scheme = `${this.#scheme}:`, authority, rest] = ABSOLUTE_URL.exec(value) ?? []
    const origin = authority === undefined ? undefined : normalizeOrigin(scheme + authority)
    return origin !== undefined && this.#localOrigins.has(origin) ? this.#publicOrigin + rest : value
  }
}
