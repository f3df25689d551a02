// Fields of a form, one per line.

/** Longer forms are shown as they are: URLSearchParams takes quadratic time. */
const CHARS_MAX = 256 * 1024
const FIELDS_MAX = 1_000
/** Also characters that some programs show as line breaks. */
const CONTROL = /[\p{Cc}\u2028\u2029]/gu

/** Undefined if it is too long. */
export function formLines(text: string): string | undefined {
  if (text.length > CHARS_MAX || text.split('&', FIELDS_MAX + 1).length > FIELDS_MAX) return undefined
  return Array.from(new URLSearchParams(text), ([name, value]) => escapeLine(`${name}: ${value}`)).join('\n')
}

/** A value with a line break must not look like another field. */
const escapeLine = (line: string) => line.replace(CONTROL, toEscape)

function toEscape(character: string): string {
  if (character === '\n') return '\\n'
  if (character === '\r') return '\\r'
  if (character === '\t') return character
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
