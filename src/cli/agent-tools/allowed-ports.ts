// The ports that the user has allowed with `adit mcp --allow-port`. Nothing else of this machine is
// published, shown or reached.
import { isLoopbackHost } from '../../lib/net/hostname.ts'
import { UsageError } from '../errors.ts'

/** Each tunnel may record up to 64 MiB. */
const PORTS_MAX = 10

export class AllowedPorts {
  readonly list: readonly number[]

  constructor(texts: readonly string[]) {
    this.list = [...new Set(texts.map(parsePort))]
    if (this.list.length > PORTS_MAX)
      throw new UsageError(`Too many --allow-port (expected at most ${PORTS_MAX}).`)
  }

  has(port: number): boolean {
    return this.list.includes(port)
  }

  /** `target`: URL of a local server. */
  allows(target: string): boolean {
    const { protocol = '', hostname = '', port = '' } = URL.parse(target) ?? {}
    const defaultPort = { 'http:': 80, 'https:': 443 }[protocol]
    if (defaultPort === undefined || !isLoopbackHost(hostname)) return false
    return this.has(port === '' ? defaultPort : Number(port))
  }
}

function parsePort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (port < 1 || port > 65_535) throw new UsageError(`Invalid --allow-port "${text}" (expected 1–65535).`)
  return port
}
