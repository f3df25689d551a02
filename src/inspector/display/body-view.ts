// How a body is shown: JSON and forms indented, other text as it is, images as data, the rest in hexadecimal.
import { type Body, type BodyView, LIMITS } from '../api.ts'
import { findHeader, type RecordedPart } from '../store/exchange.ts'
import { decodeContent } from './content-encoding.ts'
import { formLines } from './form-lines.ts'
import { hexLines } from './hex.ts'
import { prettyJson } from './pretty-json.ts'

const JSON_TYPE = /^(?:application|text)\/(?:[\w.-]+\+)?json\b/i
const FORM_TYPE = /^application\/x-www-form-urlencoded\b/i
const CHARSET = /;\s*charset="?([\w-]{1,40})/i
/** Control characters that text does not have. */
const BINARY = /(?![\t\n\f\r\u0085])\p{Cc}/u

/** Raster images, by their first bytes. SVG is text here. */
const IMAGES: readonly (readonly [mediaType: string, start: RegExp])[] = [
  ['image/png', /^\x89PNG\r\n/],
  ['image/jpeg', /^\xff\xd8\xff/],
  ['image/gif', /^GIF8[79]a/],
  ['image/webp', /^RIFF[\s\S]{4}WEBP/],
  ['image/avif', /^[\s\S]{4}ftypavi[fs]/],
]
const IMAGE_START_BYTES = 16

interface Shown {
  readonly view: BodyView
  readonly isCut: boolean
}

export async function describeBody(part: RecordedPart): Promise<Body> {
  const { body } = part
  const { content, encodings, isCut, problem } = await decodeBody(part)
  const shown = showContent(content, findHeader(part.headers, 'content-type') ?? '', isCut || body.isCut)
  return {
    bytes: body.bytes,
    recordedBytes: body.content.length,
    cut: body.isCut,
    decoded: encodings,
    ...(problem !== undefined && { decodeProblem: problem }),
    viewCut: isCut || shown.isCut,
    view: shown.view,
  }
}

/** Without its content encoding, if that can be decoded. */
export const decodeBody = ({ headers, body }: RecordedPart) =>
  decodeContent(body.content, findHeader(headers, 'content-encoding'), !body.isCut, LIMITS.decodedBytes)

function showContent(content: Buffer, type: string, isCut: boolean): Shown {
  if (content.length === 0) return { view: { type: 'empty' }, isCut: false }
  const start = content.toString('latin1', 0, IMAGE_START_BYTES)
  const image = IMAGES.find(([, pattern]) => pattern.test(start))
  if (image)
    return {
      view: { type: 'image', mediaType: image[0], base64: content.toString('base64') },
      isCut: false,
    }
  const text = decodeText(content, type, isCut)
  if (text !== undefined) return { view: { type: 'text', ...formatText(text, type) }, isCut: false }
  const part = content.subarray(0, LIMITS.hexBytes)
  return { view: { type: 'hex', text: hexLines(part) }, isCut: part.length < content.length }
}

/** Undefined if it is binary. The last character of a part may be incomplete, and is left out. */
export function decodeText(content: Buffer, type: string, isPart: boolean): string | undefined {
  try {
    const decoder = new TextDecoder(CHARSET.exec(type)?.[1] ?? 'utf-8', { fatal: true })
    const text = decoder.decode(content, { stream: isPart })
    return BINARY.test(text) ? undefined : text
  } catch {
    return undefined
  }
}

function formatText(text: string, type: string): { format: 'json' | 'form' | 'text'; text: string } {
  const isForm = FORM_TYPE.test(type)
  if (!isForm && !JSON_TYPE.test(type) && !/^\s*[[{]/.test(text)) return { format: 'text', text }
  const formatted = isForm ? formLines(text) : prettyJson(text)
  if (formatted === undefined) return { format: 'text', text }
  return { format: isForm ? 'form' : 'json', text: formatted }
}
