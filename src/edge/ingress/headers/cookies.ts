// Confines cookies to the host of their tunnel. With a Domain attribute a local server could set cookies for
// tunnels of other workspaces, which are under the same domain.

/** Removes Domain from every Set-Cookie. Headers are alternating names and values. */
export const confineCookies = (headers: readonly string[]): string[] =>
  headers.map((text, index) =>
    headers[index - 1]?.toLowerCase() === 'set-cookie' && index % 2 === 1 ? withoutDomain(text) : text,
  )

function withoutDomain(cookie: string): string {
  const [pair, ...attributes] = cookie.split(';')
  return [pair, ...attributes.filter((attribute) => !isDomain(attribute))].join(';')
}

/** Ignores everything but letters, because browsers differ in what they skip around attribute names. */
const isDomain = (attribute: string) =>
  (attribute.split('=', 1)[0] as string).replace(/[^a-z]/gi, '').toLowerCase() === 'domain'
