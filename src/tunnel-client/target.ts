// Parses the target of a tunnel, as users write it.
import { resolve } from 'node:path'
import { normalizeOrigin } from '../lib/net/host-header.ts'
import type { TunnelType } from '../tunnel-protocol/protocol.ts'
import type { Target, TlsOptions } from './dialer.ts'

/** Longer ones do not fit into the address of a socket. */
const SOCKET_PATH_BYTES_MAX = 107

/** Its message is for the user. */
export class InvalidTarget extends TypeError {}

interface ParsedTarget {
  url: string
  /** Undefined if it has no form that the edge accepts. */
  origin: string | undefined
  target: Target
}

const SCHEMES: Record<TunnelType, readonly string[]> = { http: ['http', 'https'], tcp: ['tcp'] }

/**
 * `text` is a port of this machine, `host:port`, a URL of these, or `unix:` and a path. `tls` is for
 * https://, and `tlsNames` are the names of the user's options for it.
 */
export function parseTarget(
  type: TunnelType,
  text: string,
  tls: TlsOptions | undefined,
  tlsNames: string,
): ParsedTarget {
  const [, prefix, slashes, rest = text] =
    /^(https?|tcp|unix|[a-z][a-z\d+.-]*(?=:\/\/)):(\/\/)?(.*)$/is.exec(text) ?? []
  const scheme = prefix?.toLowerCase() ?? (SCHEMES[type][0] as string)
  if (tls && scheme !== 'https')
    throw new InvalidTarget(`${tlsNames} are for targets with https://, e.g. https://localhost:8443.`)
  if (scheme === 'unix') return parseSocket(rest)
  if (!SCHEMES[type].includes(scheme) || (prefix !== undefined && slashes === undefined))
    throw new InvalidTarget(
      `Invalid target "${text}" (expected a port, host:port, unix:<path>, or a URL with ` +
        `${SCHEMES[type].map((name) => `${name}://`).join(' or ')}).`,
    )
  const address = rest.replace(/\/$/, '')
  const [, host = 'localhost', portText = address] =
    /^(\[[\da-f:.]+\]|[^:/?#@[\]\s]+):([^:]*)$/i.exec(address) ?? []
  const port = /^\d{1,5}$/.test(portText) ? Number(portText) : 0
  if (port < 1 || port > 65_535)
    throw new InvalidTarget(
      `Invalid port "${portText}" (expected 1–65535). ` +
        'The target is a port or host:port, e.g. 3000 or 127.0.0.1:3000.',
    )
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

function parseSocket(text: string): ParsedTarget {
  const path = resolve(text)
  if (text === '' || Buffer.byteLength(path) > SOCKET_PATH_BYTES_MAX)
    throw new InvalidTarget(
      `Invalid path of a Unix socket "${text}" (expected at most ${SOCKET_PATH_BYTES_MAX} bytes, e.g. unix:/run/app.sock).`,
    )
  return { url: `unix:${path}`, origin: 'http://localhost', target: { path } }
}
