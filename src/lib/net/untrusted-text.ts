// Text from a server or an edge, made safe to show to a user.

const MESSAGE_CHARS_MAX = 500
const LINE_BREAK = /[\t\n\r\p{Zl}\p{Zp}]/u

/**
 * Puts the text on one line, so that no part looks like a line of this program, and replaces characters that
 * move the cursor or reorder the line.
 */
export const oneLine = (text: string): string =>
  text
    .replace(/\s+/g, (space) => (LINE_BREAK.test(space) ? ' ' : space))
    .replace(/[\p{Cc}\p{Bidi_Control}]/gu, '\ufffd')

/** Like `oneLine`, with a limited length. */
export function messageLine(text: string): string {
  const line = oneLine(text.slice(0, MESSAGE_CHARS_MAX + 1).toWellFormed())
  return line.length > MESSAGE_CHARS_MAX ? `${line.slice(0, MESSAGE_CHARS_MAX)}…` : line
}
