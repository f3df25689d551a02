// Text with color. Styles are kept apart from the text until it is written, so that control characters in
// data can be removed without removing ours, and tables can measure the visible width.
import { WriteStream } from 'node:tty'
import { forcesColor } from '../server/config/environment.ts'

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
  if (typeof text === 'string') return replaceControl(text)
  if ('style' in text) {
    const shown = replaceControl(text.text)
    const [start, end] = CODES[text.style]
    return hasColors(stream) ? `\u001b[${start}m${shown}\u001b[${end}m` : shown
  }
  return text.map((part) => render(part, stream)).join('')
}

const CODES: Record<Style, readonly [start: number, end: number]> = {
  bold: [1, 22],
  dim: [2, 22],
  green: [32, 39],
  yellow: [33, 39],
  red: [31, 39],
}

const colored = new WeakMap<NodeJS.WriteStream, boolean>()

/** Respects NO_COLOR, FORCE_COLOR and TERM=dumb. With FORCE_COLOR, the stream may be no terminal. */
function hasColors(stream: NodeJS.WriteStream): boolean {
  const isColored =
    colored.get(stream) ?? ((stream.isTTY || forcesColor()) && WriteStream.prototype.getColorDepth() > 1)
  colored.set(stream, isColored)
  return isColored
}

export const joinLines = (lines: readonly Text[]): Text =>
  lines.flatMap((line, index) => (index === 0 ? [line] : ['\n', line]))

/**
 * Data from a server must not move the cursor or reorder the line: such characters are shown as U+FFFD. Tab
 * and newline stay, for layout; `oneLine` replaces them in data.
 */
export const replaceControl = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to replace
  text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, '\ufffd')
