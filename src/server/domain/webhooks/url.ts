// URLs of webhook endpoints. Only owners see the whole URL, because its path or query often has a secret of
// the receiver.

/** For the audit log and notices, which others read. */
export function redactUrl(url: string): string {
  const { origin, pathname, search } = new URL(url)
  return pathname + search === '/' ? origin : `${origin}/…`
}
