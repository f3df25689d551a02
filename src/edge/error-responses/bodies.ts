// Error responses to visitors in the format that they accept: a page, JSON or plain text. All are built when
// the edge starts, so that a flood of errors costs little.
import { escapeHtml } from '../../lib/html.ts'
import { type Cause, type CauseCode, causes, type VisitorError } from './causes.ts'
import { CONTENT_SECURITY_POLICY, renderPage } from './page.ts'

type Format = 'html' | 'json' | 'text'

interface Body {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** What follows is ignored; browsers send less than 200 characters. */
const ACCEPT_CHARS_MAX = 1_000
/** A host name has at most 253. */
const DETAIL_CHARS_MAX = 300

const FORMATS = new Map<string, Format>([
  ['text/html', 'html'],
  ['application/xhtml+xml', 'html'],
  ['application/json', 'json'],
  ['application/problem+json', 'json'],
  ['text/plain', 'text'],
])

/** The most preferred format, the first of equal ones. Wildcards, as curl sends them, mean plain text. */
export function chooseFormat(accept: string): Format {
  let chosen: Format = 'text'
  let highest = 0
  for (const range of accept.slice(0, ACCEPT_CHARS_MAX).split(',')) {
    const [type = '', ...parameters] = range.toLowerCase().split(';')
    const format = FORMATS.get(type.trim())
    const weight = parameters.find((parameter) => parameter.trim().startsWith('q='))
    const quality = weight === undefined ? 1 : Number(weight.trim().slice('q='.length))
    if (format && quality > highest) [chosen, highest] = [format, quality]
  }
  return chosen
}

const COMMON_HEADERS = { 'cache-control': 'no-store', vary: 'Accept', 'x-content-type-options': 'nosniff' }
const HEADERS: Record<Format, Record<string, string>> = {
  html: {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': CONTENT_SECURITY_POLICY,
    ...COMMON_HEADERS,
  },
  json: { 'content-type': 'application/json', ...COMMON_HEADERS },
  text: { 'content-type': 'text/plain; charset=utf-8', ...COMMON_HEADERS },
}

type Template = readonly [before: string, after: string]

const jsonText = (text: string) => JSON.stringify(text).slice(1, -1)

const renderTemplates = (code: string, cause: Cause): Record<Format, Template> => ({
  html: renderPage(cause),
  json: [
    `{"error":"${code}","message":"${jsonText(`${cause.title}.`)}`,
    `","visitor":"${jsonText(cause.visitor)}","owner":"${jsonText(cause.owner)}"}`,
  ],
  text: [`${cause.title}.`, `\n${cause.visitor}\n\nIf this is your tunnel: ${cause.owner}\n`],
})

const templates = Object.fromEntries(
  Object.entries(causes).map(([code, cause]) => [code, renderTemplates(code, cause)]),
) as Record<CauseCode, Record<Format, Template>>

const formatDetail: Record<Format, (detail: string) => string> = {
  html: (detail) => `<p>${escapeHtml(detail)}</p>`,
  json: (detail) => ` ${jsonText(detail)}`,
  text: (detail) => ` ${detail}`,
}

/** `accept` is the header of the request. */
export function errorBody({ cause, detail, headers }: VisitorError, accept = ''): Body {
  const format = chooseFormat(accept)
  const [before, after] = templates[cause][format]
  const middle = detail === undefined ? '' : formatDetail[format](detail.slice(0, DETAIL_CHARS_MAX))
  const body = before + middle + after
  return {
    headers: { ...HEADERS[format], ...headers, 'content-length': String(Buffer.byteLength(body)) },
    body,
  }
}
