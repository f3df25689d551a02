// A recorded request as a command line of curl. Values come from visitors, so everything is quoted, and
// characters that a terminal acts on are never in the text.
import { isOmitted, type TextRequest, toUrl } from './request.ts'

/** Printable ASCII, line breaks and tabs, or characters that are no control characters. */
const PLAIN = /^(?:[\t\n]|\P{C})*$/u
const ASCII = /^[\x20-\x7e]*$/

export function toCurl(request: TextRequest): string {
  const { method, headers, body } = request
  const words = ['curl', '--globoff', '--path-as-is', `--request ${quote(method)}`, quote(toUrl(request))]
  for (const { name, value } of headers) if (!isOmitted(name)) words.push(`--header ${header(name, value)}`)
  if (body.length === 0) return words.join(' ')
  const text = decode(body)
  if (text !== undefined) return [...words, `--data-raw ${quote(text)}`].join(' ')
  return `printf %s ${quote(toBase64(body))} | base64 -d | ${[...words, '--data-binary @-'].join(' ')}`
}

const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

/** curl needs a semicolon for a header without a value. */
function header(name: string, value: string): string {
  const line = value === '' ? `${name};` : `${name}: ${value}`
  return ASCII.test(line) ? quote(line) : `"$(printf -- ${quote(octal(line))})"`
}

/** For the format of printf: the bytes of latin1 text in ASCII. */
const octal = (text: string) =>
  text.replace(/[^\x20-\x7e]|[%\\]/g, (character) => {
    if (character === '%') return '%%'
    return `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`
  })

function decode(body: Uint8Array): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body)
    return PLAIN.test(text) ? text : undefined
  } catch {
    return undefined
  }
}

export function toBase64(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) text += String.fromCharCode(byte)
  return btoa(text)
}
