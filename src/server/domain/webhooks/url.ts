// URLs of webhook endpoints. Only owners see the whole URL, because its path or query often has a secret of
// the receiver.

/** The URL as the audit log and notices show it, which others read. */
export function redactUrl(url: string): string {
  const { origin, pathname, search } = new URL(url)
  return pathname + search === '/' ? origin : `${origin}/…`
}
