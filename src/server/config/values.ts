// Parsers of values. Their errors do not repeat the value, which may contain a password.
import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { isEmail } from '../../contract/fields.ts'
import { isDnsLabel } from '../../lib/net/hostname.ts'
import { parseNetwork } from '../../lib/net/ip-network.ts'
import type { PortRange } from '../../lib/net/tcp-ports.ts'
import type { Target } from '../store/engine/store.ts'

export function readInteger(text: string, min: number, max: number): number {
  const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (!(number >= min && number <= max)) throw new Error(`must be a whole number from ${min} to ${max}`)
  return number
}

const UNITS = ['', 'K', 'M', 'G', 'T']
const QUANTITY = /^(\d{1,16})(?:([KMGT])(i?))?$/

/** A whole number, also with K, M, G or T (powers of 1,000) or Ki, Mi, Gi or Ti (of 1,024). */
export function readQuantity(text: string): number {
  const [, digits = '', unit = '', binary = ''] = QUANTITY.exec(text) ?? []
  const number = Number(digits) * (binary ? 1_024 : 1_000) ** UNITS.indexOf(unit)
  if (number < 1 || number > Number.MAX_SAFE_INTEGER)
    throw new Error('must be a whole number from 1 to 9000T, such as 500G or 500Gi')
  return number
}

export function readBaseUrl(text: string): string | undefined {
  if (text === '') return undefined
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash || url.username || url.password)
    throw new Error(
      'must be an http or https URL without user, query or fragment, e.g. https://adit.example.com',
    )
  return url.href.replace(/\/$/, '')
}

export function readDatabaseUrl(text: string): Target {
  if (text.startsWith('sqlite:')) {
    const path = text.slice('sqlite:'.length).replace(/^\/\/(?=.)/, '')
    if (path === '' || path === ':memory:')
      throw new Error('must name a file, e.g. sqlite:/var/lib/adit/adit.db')
    return { engine: 'sqlite', path: resolve(path) }
  }
  const url = /^postgres(ql)?:\/\//.test(text) ? URL.parse(text) : null
  // A Unix socket is given as the parameter `host`.
  if (url && (url.hostname || url.searchParams.has('host'))) return { engine: 'postgres', url: text }
  throw new Error('must be sqlite:<path> or postgres://user:password@host:port/database')
}

export function readSmtpUrl(text: string): string | undefined {
  if (text === '') return undefined
  const url = URL.parse(text)
  if (!url || !/^smtps?:$/.test(url.protocol) || !url.hostname)
    throw new Error('must be smtp://host:port or smtps://host:port, with user:password@ if needed')
  return text
}

interface PublicEndpoint {
  scheme: 'http' | 'https'
  port: number | undefined
}

export function readPublicEndpoint(text: string): PublicEndpoint | undefined {
  if (text === '') return undefined
  const [, scheme, port] = /^(https?)(?::(\d{1,5}))?$/.exec(text) ?? []
  if (scheme !== 'http' && scheme !== 'https')
    throw new Error('must be http or https, with :<port> if needed')
  return { scheme, port: port === undefined ? undefined : readInteger(port, 1, 65_535) }
}

export function readPortRange(text: string): PortRange | undefined {
  if (text === '') return undefined
  const [, first = '', last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text) ?? []
  const range = { first: Number(first), last: Number(last) }
  if (first === '' || range.first < 1 || range.last > 65_535 || range.last < range.first)
    throw new Error('must be a port or a range of ports, e.g. 20000-20999')
  return range
}

/** Addresses become networks of one address. */
export function readNetworks(text: string): string[] {
  return text
    .split(',')
    .flatMap((part) => part.trim() || [])
    .map((part) => {
      const network = parseNetwork(part)
      if (!network) throw new Error('must be comma-separated IP addresses or networks, e.g. 10.0.0.0/8')
      return network
    })
}

/** As browsers write them: in lower case, without a path and without the usual port of the scheme. */
/** A URI on one line of security.txt. */
export function readContact(text: string): string | undefined {
  if (text === '') return undefined
  const url = URL.parse(text)
  const isMail = url?.protocol === 'mailto:' && isEmail(url.pathname)
  if (!url || !(isMail || url.protocol === 'https:'))
    throw new Error('must be an https or mailto URL, e.g. mailto:security@example.com')
  return url.href
}

export function readOrigins(text: string): string[] {
  return text
    .split(',')
    .flatMap((part) => part.trim() || [])
    .map((part) => {
      const isOrigin = /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#*@]+$/.test(part)
      if (!isOrigin || (/^https?:/.test(part) && URL.parse(part)?.origin !== part))
        throw new Error('must be comma-separated origins, e.g. https://agents.example.com')
      return part
    })
}

export function readDomain(text: string): string {
  if (!text.split('.').every(isDnsLabel) || text.length > 180 || isIP(text))
    throw new Error(
      'must be a domain name in lower case, e.g. tunnels.example.com; an IP address has no subdomains',
    )
  return text
}
