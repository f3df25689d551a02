// Parses the target of a tunnel, as users write it.
import { resolve } from 'node:path'
import { normalizeOrigin } from '../lib/net/host-header.ts'
import type { TunnelType } from '../tunnel-protocol/protocol.ts'
import type { Target, TlsOptions } from './dialer.ts'

/** A longer path does not fit into a socket address. */
const SOCKET_PATH_BYTES_MAX = 107

/** The message is for the user. */
export class InvalidTarget extends TypeError {}

interface ParsedTarget {
  url: string
  /** Undefined if the edge does not accept the origin. */
  origin: string | undefined
  target: Target
}

const SCHEMES: Record<TunnelType, readonly string[]> = { http: ['http', 'https'], tcp: ['tcp'] }

/** The names that users know other options by, for messages. */
interface OptionNames {
  /** The options in `TlsOptions`. */
  readonly tls: string
  /** A folder instead of a target; undefined if there is no such option. */
  readonly folder?: string | undefined
}

/**
 * `text` is a port of this machine, `host:port`, a URL of these, or `unix:` and a path. `tls` is for
 * https://.
 */
export function parseTarget(
  type: TunnelType,
  text: string,
  tls: TlsOptions | undefined,
  names: OptionNames,
): ParsedTarget {
  const [, prefix, slashes, rest = text] =
    /^(https?|tcp|unix|[a-z][a-z\d+.-]*(?=:\/\/)):(\/\/)?(.*)$/is.exec(text) ?? []
  const scheme = prefix?.toLowerCase() ?? (SCHEMES[type][0] as string)
  if (tls && scheme !== 'https')
    throw new InvalidTarget(`${names.tls} are for targets with https://, e.g. https://localhost:8443.`)
  if (scheme === 'unix') return parseSocket(rest)
  if (!SCHEMES[type].includes(scheme) || (prefix !== undefined && slashes === undefined))
    throw invalidTarget(type, text, names)
  const address = rest.replace(/\/$/, '')
  const [, host = 'localhost', portText = address] =
    /^(\[[\da-f:.]+\]|[^:/?#@[\]\s]+):([^:]*)$/i.exec(address) ?? []
  if (portText === address && !/^\d+$/.test(address)) throw invalidTarget(type, text, names)
  const port = /^\d{1,5}$/.test(portText) ? Number(portText) : 0
  if (port < 1 || port > 65_535) throw new InvalidTarget(`Invalid port "${portText}" (expected 1–65535).`)
  const url = `${scheme}://${host}:${port}`
  return {
    url,
    origin: URL.canParse(url) ? normalizeOrigin(new URL(url).origin) : undefined,
    target: {
      host: host.replace(/^\[(.*)\]$/, '$1'),
      port,
      ...(scheme === 'https' && { tls: tls ?? { isInsecure: false } }),
    },
  }
}

function invalidTarget(type: TunnelType, text: string, { folder }: OptionNames): InvalidTarget {
  const url = `a URL with ${SCHEMES[type].map((name) => `${name}://`).join(' or ')} and a port`
  const forms = ['a port', 'host:port', url, 'unix:<path>', ...(type === 'http' && folder ? [folder] : [])]
  return new InvalidTarget(
    `Invalid target "${text}" (expected ${forms.slice(0, -1).join(', ')}, or ${forms.at(-1)}).`,
  )
}

function parseSocket(text: string): ParsedTarget {
  const path = resolve(text)
  if (text === '' || Buffer.byteLength(path) > SOCKET_PATH_BYTES_MAX)
    throw new InvalidTarget(
      `Invalid path of a Unix socket "${text}" (expected at most ${SOCKET_PATH_BYTES_MAX} bytes, e.g. unix:/run/app.sock).`,
    )
  return { url: `unix:${path}`, origin: 'http://localhost', target: { path } }
}
