// Rules for displayed text such as names and labels, for every field and every source: no control characters,
// no bidirectional controls, nothing invisible, so that the displayed text is the stored text.
import { TEXT_CHARS_MAX } from './limits.ts'

// Default_Ignorable_Code_Point is Unicode's set of invisible characters: bidirectional controls, zero-width
// characters, variation selectors, fillers, tags. U+FFF9 to U+FFFB (interlinear annotations) are invisible
// but not in it.
const FORBIDDEN = '\\p{Cc}\\p{Cs}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}\\ufff9-\\ufffb'

// Emoji need two of these: U+200D between two emoji, and U+FE0E or U+FE0F after one or in a keycap (1️⃣).
const PICTURE = '\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\p{Regional_Indicator}'
const JOINER = `(?<=[${PICTURE}]\\ufe0f?)\\u200d(?=\\p{Extended_Pictographic})`
const SELECTOR = `(?<=[${PICTURE}])[\\ufe0e\\ufe0f]|(?<=[0-9#*])\\ufe0f(?=\\u20e3)`

// Scripts in which U+200C and U+200D change how the letters around them are written: Persian می‌خواهم.
const JOINING =
  '\\p{scx=Arab}\\p{scx=Syrc}\\p{scx=Nkoo}\\p{scx=Mong}\\p{scx=Deva}\\p{scx=Beng}\\p{scx=Guru}\\p{scx=Gujr}' +
  '\\p{scx=Orya}\\p{scx=Taml}\\p{scx=Telu}\\p{scx=Knda}\\p{scx=Mlym}\\p{scx=Sinh}\\p{scx=Khmr}\\p{scx=Mymr}'
const LETTER = '[\\p{L}\\p{M}]'
const JOINED = `(?<=${LETTER})(?<=[${JOINING}])[\\u200c\\u200d](?=${LETTER})(?=[${JOINING}])`

const CHARACTER = `(?:[^${FORBIDDEN}]|${JOINER}|${JOINED}|${SELECTOR})`

/**
 * Pattern of text that may be displayed. The alternatives exclude each other, so matching takes linear time.
 */
export const DISPLAY_TEXT = `^${CHARACTER}*$`

// U+2800 (braille without dots) looks like a space.
const VISIBLE = '[^\\s\\u2800]'

/** The same, with at least one character that does not look like a space. */
export const DISPLAY_NAME = `^(?=.*${VISIBLE})${CHARACTER}*$`

const visible = new RegExp(VISIBLE, 'u')

export const isBlank = (text: string): boolean => !visible.test(text)

const allowedStart = new RegExp(`^${CHARACTER}*`, 'u')
const allowedCharacters = new RegExp(CHARACTER, 'gu')

/** An error message for the first forbidden character of the text; undefined if there is none. */
export function forbiddenCharacter(text: string): string | undefined {
  const allowed = allowedStart.exec(text)?.[0] ?? ''
  const found = text.codePointAt(allowed.length)
  if (found === undefined) return undefined
  const codePoint = `U+${found.toString(16).toUpperCase().padStart(4, '0')}`
  const position = [...allowed].length + 1
  return `must not contain ${codePoint}, a control or invisible character (character ${position})`
}

/** Sanitizes external text that cannot be rejected: one line, without forbidden characters, truncated. */
export function cleanText(text: string, charsMax: number): string {
  const line = text.replace(/[\s\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ').trim()
  const cut = [...keepAllowed(line)].slice(0, charsMax).join('')
  return keepAllowed(cut).trim()
}

/** Repeats until nothing changes: removing a character can make its neighbor forbidden. */
function keepAllowed(text: string): string {
  const allowed = (text.match(allowedCharacters) ?? []).join('')
  return allowed === text ? text : keepAllowed(allowed)
}

/** A name on one line that no mail client turns into a link: `evil.example` becomes `evil example`. */
export const withoutLinks = (name: string): string =>
  cleanText(name.normalize('NFKC'), TEXT_CHARS_MAX)
    .replace(/[.:/\\@\u3002]+(?=\S)/gu, ' ')
    .trim()

const UNSAFE_IN_JSON = /[\u007f-\u009f\p{Zl}\p{Zp}\p{Bidi_Control}]/gu

/**
 * JSON for files and terminals, which parses to the same value. `JSON.stringify` leaves C1 controls as they
 * are, which terminals interpret, and bidirectional controls, which reorder the line.
 */
export const printableJson = (value: unknown): string =>
  JSON.stringify(value).replace(
    UNSAFE_IN_JSON,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
