// A recorded request as a call of fetch. Values come from visitors: they are literals in ASCII.
import { toBase64 } from './curl.ts'
import { isOmitted, type TextRequest, toUrl } from './request.ts'

export function toFetch(request: TextRequest): string {
  const { method, headers, body } = request
  const kept = headers.filter(({ name }) => !isOmitted(name))
  const lines = [`await fetch(${literal(toUrl(request))}, {`, `  method: ${literal(method)},`]
  if (kept.length > 0) {
    const pairs = kept.map(({ name, value }) => `    [${literal(name)}, ${literal(value)}],`)
    lines.push('  headers: [', ...pairs, '  ],')
  }
  if (body.length > 0) lines.push(`  body: ${bodyText(body)},`)
  return [...lines, '})'].join('\n')
}

/** JSON in ASCII is a string in JavaScript, also inside of HTML. */
const literal = (text: string) =>
  JSON.stringify(text).replace(
    /[^\x20-\x7e]|</g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

function bodyText(body: Uint8Array): string {
  try {
    return literal(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body))
  } catch {
    return `Uint8Array.from(atob(${literal(toBase64(body))}), (character) => character.charCodeAt(0))`
  }
}
