// Indents JSON without changing its tokens: numbers keep their digits, and members with the same name stay.
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g
/** Deeper levels are not indented further, because the text would grow with the square of the depth. */
const INDENTED_LEVELS_MAX = 40

/** Undefined if the text is not JSON. */
export function prettyJson(text: string): string | undefined {
  try {
    JSON.parse(text)
  } catch {
    return undefined
  }
  const parts: string[] = []
  let level = 0
  let previous = ''
  const newLine = () => parts.push(`\n${'  '.repeat(Math.min(level, INDENTED_LEVELS_MAX))}`)
  for (const [token] of text.matchAll(TOKEN)) {
    const isClosing = token === '}' || token === ']'
    if (isClosing) level -= 1
    const wasOpening = previous === '{' || previous === '['
    if (isClosing ? !wasOpening : wasOpening || previous === ',') newLine()
    parts.push(token === ':' ? ': ' : token)
    if (token === '{' || token === '[') level += 1
    previous = token
  }
  return parts.join('')
}
