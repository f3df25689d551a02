/** A URL that works on this machine: with loopback for a listener on all addresses, IPv6 in brackets. */
export function listenUrl(host: string, { port }: { port: number }): string {
  const isWildcard = host === '0.0.0.0' || host === '::'
  return `http://${isWildcard ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host}:${port}`
}
