// Keeps cookies of a tunnel to its own host. With a Domain attribute a local server could set cookies for the tunnels of other
// workspaces, which are under the same domain.

/** For headers as names and values in turn: removes Domain from every cookie, so that it is for the host alone. */
export const confineCookies = (headers: readonly string[]): string[] =>
  headers.map((text, index) =>
    headers[index - 1]?.toLowerCase() === 'set-cookie' && index % 2 === 1 ? withoutDomain(text) : text,
  )

function withoutDomain(cookie: string): string {
  const [pair, ...attributes] = cookie.split(';')
  return [pair, ...attributes.filter((attribute) => !isDomain(attribute))].join(';')
}

/** However it is written: browsers differ in what they skip around a name. */
const isDomain = (attribute: string) =>
  (attribute.split('=', 1)[0] as string).replace(/[^a-z]/gi, '').toLowerCase() === 'domain'
