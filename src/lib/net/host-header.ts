// The Host header that a local server gets instead of the tunnel's: `rewrite` stands for the host of the
// target, anything else is the host itself.

/** JSON schemas use it too. No character that matches can end a header. */
export const HOST_HEADER_PATTERN = '^(?:[A-Za-z0-9_.-]+|\\[[0-9A-Fa-f:.]+\\])(?::[0-9]{1,5})?$'
export const HOST_HEADER_CHARS_MAX = 255
export const HOST_HEADER_RULE = '"rewrite", or a host with an optional port, e.g. app.test or localhost:3000'

const PATTERN = new RegExp(HOST_HEADER_PATTERN)

/** A host with an optional port. */
export const isHost = (text: string): boolean =>
  text.length <= HOST_HEADER_CHARS_MAX &&
  PATTERN.test(text) &&
  !/^\.|\.\.|\.(:|$)|:0*$/.test(text) &&
  URL.canParse(`http://${text}`)

/** The origin of a URL whose path is empty, in the form of browsers; undefined if it is none. */
export function normalizeOrigin(text: string): string | undefined {
  const [, host = ''] = /^https?:\/\/([^/]*)$/i.exec(text) ?? []
  return isHost(host) ? new URL(text).origin : undefined
}
