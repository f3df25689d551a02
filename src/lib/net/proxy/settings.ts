// Selects the proxy of a connection by HTTPS_PROXY, HTTP_PROXY and NO_PROXY. As in curl, the lower-case
// variables take precedence.
import { normalizeAddress } from '../ip-address.ts'
import { createNetworkMatcher, parseNetwork } from '../ip-network.ts'

export interface ForwardProxy {
  readonly hostname: string
  readonly port: number
  /** Whether the connection to the proxy itself uses TLS. */
  readonly isTls: boolean
  /** The value of Proxy-Authorization. */
  readonly authorization: string | undefined
  /** Host, port and the setting that has them, without user and password, for messages. */
  readonly name: string
}

/** Undefined for a direct connection. */
export type FindProxy = (url: URL) => ForwardProxy | undefined

type Environment = Readonly<Record<string, string | undefined>>

/** Throws an Error that names the variable but not its value, which may contain a password. */
export function parseProxies(environment: Environment): FindProxy {
  const httpsProxy = parseProxy(environment, 'HTTPS_PROXY')
  const httpProxy = parseProxy(environment, 'HTTP_PROXY')
  const isExcluded = parseExclusions(readVariable(environment, 'NO_PROXY')?.value ?? '')
  return (url) => {
    const proxy = url.protocol === 'https:' ? httpsProxy : httpProxy
    return proxy && !isExcluded(url) ? proxy : undefined
  }
}

function readVariable(environment: Environment, upperCase: string) {
  for (const variable of [upperCase.toLowerCase(), upperCase]) {
    const value = environment[variable]?.trim()
    if (value) return { variable, value }
  }
  return undefined
}

const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i

function parseProxy(environment: Environment, upperCase: string): ForwardProxy | undefined {
  const found = readVariable(environment, upperCase)
  return found && parseProxyUrl(found.value, found.variable)
}

/** `source` is the variable or option that has the value. Throws an Error that names it. */
export function parseProxyUrl(value: string, source: string): ForwardProxy {
  try {
    const url = new URL(SCHEME.test(value) ? value : `http://${value}`)
    const isTls = url.protocol === 'https:'
    if (!url.hostname || (!isTls && url.protocol !== 'http:')) throw new TypeError()
    const port = Number(url.port) || defaultPort(url)
    return {
      hostname: withoutBrackets(url.hostname),
      port,
      isTls,
      authorization: basicAuthorization(url),
      name: `${url.hostname}:${port} (${source})`,
    }
  } catch {
    throw new Error(
      `${source} must be the URL of an HTTP proxy, e.g. http://proxy.example.com:3128, with user:password@ ` +
        'if needed; SOCKS is not supported',
    )
  }
}

export const defaultPort = ({ protocol }: URL) => (protocol === 'https:' ? 443 : 80)

export const withoutBrackets = (hostname: string) => hostname.replace(/^\[(.*)\]$/, '$1')

function basicAuthorization({ username, password }: URL): string | undefined {
  if (!username && !password) return undefined
  const credential = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return `Basic ${Buffer.from(credential).toString('base64')}`
}

type Exclusion = (hostname: string, port: number) => boolean

/** Entries are `*`, domains (which include subdomains), addresses or networks, with an optional `:port`. */
function parseExclusions(text: string): (url: URL) => boolean {
  const exclusions = text.split(/[\s,]+/).flatMap((entry) => (entry === '' ? [] : parseExclusion(entry)))
  return (url) => {
    const hostname = withoutBrackets(url.hostname).replace(/\.$/, '')
    const port = Number(url.port) || defaultPort(url)
    return exclusions.some((matches) => matches(hostname, port))
  }
}

const ENTRY_WITH_PORT = /^([^:]+|\[[^\]]+\]):(\d{1,5})$/

function parseExclusion(entry: string): Exclusion {
  const [, host = entry, onlyPort] = ENTRY_WITH_PORT.exec(entry) ?? []
  const matchesHost = parseExcludedHost(withoutBrackets(host).toLowerCase())
  return (hostname, port) => (onlyPort === undefined || port === Number(onlyPort)) && matchesHost(hostname)
}

function parseExcludedHost(host: string): (hostname: string) => boolean {
  if (host === '*') return () => true
  const network = parseNetwork(host)
  if (network !== undefined) {
    const isInNetwork = createNetworkMatcher([network])
    return (hostname) => {
      const address = normalizeAddress(hostname)
      return address !== undefined && isInNetwork(address)
    }
  }
  const domain = host.replace(/^\*?\./, '').replace(/\.$/, '')
  return (hostname) => hostname === domain || hostname.endsWith(`.${domain}`)
}
