// Where an agent may get its authorization code: an https URL, an http URL of a loopback host (RFC 8252,
// section 7.3), or a private-use scheme (section 7.1). All other schemes are rejected: some of them run code.

const REDIRECT_URI_CHARS_MAX = 500

/** Printable ASCII without a backslash, which browsers read as a slash. */
const CHARACTERS = /^[!-[\]-~]+$/
const LOOPBACK = /^http:\/\/(localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?((?:[/?].*)?)$/
/** RFC 8252 asks for a reversed domain name, such as `com.example.app`. No scheme of a browser has one. */
const REVERSED_DOMAIN = /^[a-z][a-z0-9+-]*(?:\.[a-z0-9+-]+)+:$/
/**
 * Known editors whose schemes have no period. The host of their extensions is `publisher.name`. Other URLs,
 * and those of extensions of the editors themselves, open files, clone repositories or install MCP servers.
 */
const EDITOR_SCHEMES: ReadonlySet<string> = new Set(['cursor:', 'vscode:', 'vscode-insiders:', 'windsurf:'])
const EDITOR_EXTENSION = /^(?!vscode\.|anysphere\.cursor-deeplink$)[a-z0-9-]+\.[a-z0-9-]+$/i
/** If the URI had one of them, the client could read that one instead of ours. */
const RESPONSE_PARAMETERS = ['code', 'state', 'iss', 'error', 'error_description']

export function isRedirectUri(text: string): boolean {
  if (text.length > REDIRECT_URI_CHARS_MAX || !CHARACTERS.test(text) || text.includes('#')) return false
  const url = URL.parse(text)
  if (url?.username !== '' || url.password !== '') return false
  const { protocol, hostname, searchParams } = url
  if (RESPONSE_PARAMETERS.some((name) => searchParams.has(name))) return false
  if (protocol === 'https:') return text.startsWith('https://') && hostname !== ''
  if (protocol === 'http:') return LOOPBACK.test(text)
  if (EDITOR_SCHEMES.has(protocol)) return EDITOR_EXTENSION.test(hostname)
  return REVERSED_DOMAIN.test(protocol)
}

/** Compares exactly, except for the port of a loopback URL: the agent gets a free one when it starts. */
export const isRegistered = (uri: string, registered: readonly string[]): boolean =>
  isRedirectUri(uri) && registered.some((each) => withoutPort(each) === withoutPort(uri))

function withoutPort(uri: string): string {
  const [, host, rest] = LOOPBACK.exec(uri) ?? []
  return host === undefined ? uri : `http://${host}${rest}`
}

export const isLoopback = (uri: string): boolean => LOOPBACK.test(uri)

/** For display: the host that gets the code, or the scheme of the app. */
export function describeTarget(uri: string): string {
  const { protocol, host, hostname } = new URL(uri)
  if (protocol === 'https:') return host
  return protocol === 'http:' ? hostname : protocol
}

/** Keeps the query of the URI as it is, as RFC 6749 requires. */
export const withParameters = (uri: string, parameters: Record<string, string>): string =>
  `${uri}${uri.includes('?') ? '&' : '?'}${new URLSearchParams(parameters)}`
