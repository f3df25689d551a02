// Indents JSON without changing its tokens: numbers keep their digits, and members with the same name stay.

/** Longer text is not indented: it would keep the streams of the tunnel waiting. */
const CHARS_MAX = 256 * 1024
/** Text that is nested deeply grows with its depth. */
const INDENTED_CHARS_MAX = 4 * CHARS_MAX
const INDENTED_LEVELS_MAX = 40
const LINE_STARTS = Array.from({ length: INDENTED_LEVELS_MAX + 1 }, (_, level) => `\n${'  '.repeat(level)}`)
const SPACES = ' \t\r\n'
const STRUCTURE = `{}[],:"${SPACES}`

/** Undefined if the text is not JSON, or is too long. */
export function prettyJson(text: string): string | undefined {
  if (text.length > CHARS_MAX) return undefined
  try {
    JSON.parse(text)
  } catch {
    return undefined
  }
  return indent(text)
}

/** `text` is valid JSON. Undefined if the result is too long. */
function indent(text: string): string | undefined {
  let indented = ''
  let level = 0
  let previous = ''
  const newLine = () => LINE_STARTS[Math.min(level, INDENTED_LEVELS_MAX)] ?? ''
  for (let at = 0; at < text.length; ) {
    const start = at
    const character = text[at] as string
    at = endOfToken(text, at)
    if (SPACES.includes(character)) continue
    const isClosing = character === '}' || character === ']'
    if (isClosing) level -= 1
    const wasOpening = previous === '{' || previous === '['
    if (isClosing ? !wasOpening : wasOpening || previous === ',') indented += newLine()
    indented += character === ':' ? ': ' : text.slice(start, at)
    if (indented.length > INDENTED_CHARS_MAX) return undefined
    if (character === '{' || character === '[') level += 1
    previous = character
  }
  return indented
}

/** Strings and numbers are one token. */
function endOfToken(text: string, start: number): number {
  let at = start + 1
  if (text[start] === '"') {
    while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1
    return at + 1
  }
  if (STRUCTURE.includes(text[start] as string)) return at
  while (at < text.length && !STRUCTURE.includes(text[at] as string)) at += 1
  return at
}
