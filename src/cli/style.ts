// Text with color. Styles are kept apart from the text until it is written, so that control characters in
// data can be removed without removing ours, and tables can measure the visible width.
import { styleText } from 'node:util'

type Style = 'bold' | 'dim' | 'green' | 'yellow' | 'red'

export interface Styled {
  readonly style: Style
  readonly text: string
}

export type Text = string | Styled | readonly Text[]

const styled =
  (style: Style) =>
  (text: string): Styled => ({ style, text })

export const bold = styled('bold')
export const dim = styled('dim')
export const green = styled('green')
export const yellow = styled('yellow')
export const red = styled('red')

export function plain(text: Text): string {
  if (typeof text === 'string') return text
  return 'style' in text ? text.text : text.map(plain).join('')
}

/** Colors only on a terminal that has them. */
export function render(text: Text, stream: NodeJS.WriteStream): string {
  if (typeof text === 'string') return stripControl(text)
  if ('style' in text) {
    const { start, end } = colorCodes(text.style, stream)
    return start + stripControl(text.text) + end
  }
  return text.map((part) => render(part, stream)).join('')
}

interface Codes {
  readonly start: string
  readonly end: string
}

const codes = new WeakMap<NodeJS.WriteStream, Map<Style, Codes>>()

/**
 * `styleText` respects NO_COLOR, FORCE_COLOR and TERM=dumb. It is slow, so it is called once for each style.
 */
function colorCodes(style: Style, stream: NodeJS.WriteStream): Codes {
  const streamCodes = codes.get(stream) ?? new Map<Style, Codes>()
  codes.set(stream, streamCodes)
  const cached = streamCodes.get(style)
  if (cached) return cached
  const [start = '', end = ''] = styleText(style, '|', { stream }).split('|')
  streamCodes.set(style, { start, end })
  return { start, end }
}

export const joinLines = (lines: readonly Text[]): Text =>
  lines.flatMap((line, index) => (index === 0 ? [line] : ['\n', line]))

/** Data from a server must not move the cursor or reorder the line: such characters are shown as U+FFFD. */
export const stripControl = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to replace
  text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, '\ufffd')
