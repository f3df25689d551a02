// Parsers of values. Their errors do not repeat the value, which may contain a password.
import { isIP } from 'node:net'
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { isEmail } from '../../contract/fields.ts'
import { isDnsLabel } from '../../lib/net/hostname.ts'
import { parseNetwork } from '../../lib/net/ip-network.ts'
import type { PortRange } from '../../lib/net/tcp-ports.ts'
import type { DatabaseTarget } from '../store/engine/store.ts'

export const integer =
  (min: number, max: number) =>
  (text: string): number => {
    const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
    if (!(number >= min && number <= max)) throw new Error(`must be a whole number from ${min} to ${max}`)
    return number
  }

const alternatives = new Intl.ListFormat('en', { type: 'disjunction' })

export const oneOf =
  <T extends string>(...values: readonly T[]) =>
  (text: string): T => {
    if (!values.includes(text as T)) throw new Error(`must be ${alternatives.format(values)}`)
    return text as T
  }

export const nonEmpty = (text: string): string | undefined => text || undefined

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

export function readDatabaseUrl(text: string): DatabaseTarget {
  if (text.startsWith('sqlite:')) {
    const path = text.slice('sqlite:'.length).replace(/^\/\/(?=.)/, '')
    if (path === '' || path === ':memory:')
      throw new Error('must name a file, e.g. sqlite:/var/lib/adit/adit.db')
    return { engine: 'sqlite', path: resolve(path) }
  }
  const url = /^postgres(ql)?:\/\//.test(text) ? URL.parse(text) : null
  // A Unix socket is given as the parameter `host`.
  if (url && !url.hostname.includes(',') && (url.hostname || url.searchParams.has('host')))
    return { engine: 'postgres', url: text }
  throw new Error(
    'must be sqlite:<path> or postgres://user:password@host:port/database, with one host and with @, / and : ' +
      'in the password percent-encoded',
  )
}

export function readSmtpUrl(text: string): string | undefined {
  if (text === '') return undefined
  const url = URL.parse(text)
  if (!url || !/^smtps?:$/.test(url.protocol) || !url.hostname)
    throw new Error('must be smtp://host:port or smtps://host:port, with user:password@ if needed')
  return text
}

export function readPublicEndpoint(text: string) {
  if (text === '') return undefined
  const [, scheme, port] = /^(https?)(?::(\d{1,5}))?$/.exec(text) ?? []
  if (scheme !== 'http' && scheme !== 'https')
    throw new Error('must be http or https, with :<port> if needed')
  return { scheme, port: port === undefined ? undefined : integer(1, 65_535)(port) } as const
}

const WORKERS_MAX = 64

export function readWorkers(text: string): number {
  if (text === 'auto') return Math.min(availableParallelism(), WORKERS_MAX)
  const workers = /^\d{1,2}$/.test(text) ? Number(text) : 0
  if (workers >= 1 && workers <= WORKERS_MAX) return workers
  throw new Error(`must be auto or a whole number from 1 to ${WORKERS_MAX}`)
}

export function readPortRange(text: string): PortRange | undefined {
  if (text === '') return undefined
  const [, first = '', last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text) ?? []
  const range = { first: Number(first), last: Number(last) }
  if (first === '' || range.first < 1 || range.last > 65_535 || range.last < range.first)
    throw new Error('must be a port or a range of ports, e.g. 20000-20999')
  return range
}

const splitList = (text: string) => text.split(',').flatMap((part) => part.trim() || [])

/** An address becomes a network of one address. */
export const readNetworks = (text: string): string[] =>
  splitList(text).map((part) => {
    const network = parseNetwork(part)
    if (!network) throw new Error('must be comma-separated IP addresses or networks, e.g. 10.0.0.0/8')
    return network
  })

/** Returns the serialized URL, which cannot break the line of security.txt. */
export function readContact(text: string): string | undefined {
  if (text === '') return undefined
  const url = URL.parse(text)
  const isMail = url?.protocol === 'mailto:' && isEmail(url.pathname)
  if (!url || !(isMail || url.protocol === 'https:'))
    throw new Error('must be an https or mailto URL, e.g. mailto:security@example.com')
  return url.href
}

/** Origins must have the form that browsers send: lower case, no path, no default port. */
export const readOrigins = (text: string): string[] =>
  splitList(text).map((part) => {
    const isOrigin = /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#*@]+$/.test(part)
    if (!isOrigin || (/^https?:/.test(part) && URL.parse(part)?.origin !== part))
      throw new Error('must be comma-separated origins, e.g. https://agents.example.com')
    return part
  })

export function readDomain(text: string): string {
  if (!text.split('.').every(isDnsLabel) || text.length > 180 || isIP(text))
    throw new Error(
      'must be a domain name in lower case, e.g. tunnels.example.com; an IP address has no subdomains',
    )
  return text
}
