// Text of a server or an edge that is shown to a user.

const MESSAGE_CHARS_MAX = 500
const LINE_BREAK = /[\t\n\r\p{Zl}\p{Zp}]/u

/**
 * Stays on one line, because it must not look like a line of this program, and has no characters that move
 * the cursor or reorder the line.
 */
export const oneLine = (text: string): string =>
  text
    .replace(/\s+/g, (space) => (LINE_BREAK.test(space) ? ' ' : space))
    .replace(/[\p{Cc}\p{Bidi_Control}]/gu, '\ufffd')

/** The same for a message, which is also limited in length. */
export function messageLine(text: string): string {
  const line = oneLine(text.slice(0, MESSAGE_CHARS_MAX + 1).toWellFormed())
  return line.length > MESSAGE_CHARS_MAX ? `${line.slice(0, MESSAGE_CHARS_MAX)}…` : line
}
