// Decodes the content encodings of a body, up to a limit of bytes: a small body can be a large one
// compressed.
import type { Transform } from 'node:stream'
import * as zlib from 'node:zlib'

/** Nobody applies more; each could be a bomb. */
const ENCODINGS_MAX = 3

interface Decoded {
  readonly content: Buffer
  /** Names of the encodings that were decoded. */
  readonly encodings: readonly string[]
  /** The content is not all. */
  readonly isCut: boolean
  readonly problem?: string
}

/** Node 20 has no zstd. */
const { createZstdDecompress, constants } = zlib as Partial<typeof zlib> & typeof zlib

function createDecoder(encoding: string): Transform | undefined {
  const flush = { finishFlush: constants.Z_SYNC_FLUSH }
  switch (encoding) {
    case 'gzip':
    case 'x-gzip':
      return zlib.createGunzip(flush)
    case 'deflate':
      return zlib.createInflate(flush)
    case 'br':
      return zlib.createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH })
    case 'zstd':
      return createZstdDecompress?.({ finishFlush: constants.ZSTD_e_flush })
    default:
      return undefined
  }
}

/** `header`: the Content-Encoding. `isWhole`: the body is not cut. */
export async function decodeContent(
  body: Buffer,
  header: string | undefined,
  isWhole: boolean,
  bytesMax: number,
): Promise<Decoded> {
  const names = (header ?? '').toLowerCase().split(',')
  const encodings = names.map((name) => name.trim()).filter((name) => name !== '' && name !== 'identity')
  const failed = (problem: string) => ({ content: body, encodings: [], isCut: false, problem })
  if (body.length === 0 || encodings.length === 0) return { content: body, encodings: [], isCut: false }
  if (encodings.length > ENCODINGS_MAX) return failed('The body has too many content encodings.')
  let content = body
  let isCut = false
  for (const encoding of encodings.toReversed()) {
    const decoder = createDecoder(encoding)
    if (!decoder) return failed(`The content encoding "${encoding.slice(0, 30)}" is not supported here.`)
    const decoded = await decode(decoder, content, bytesMax)
    // What was decoded before a body was cut is useful.
    if (decoded.hasFailed && (isWhole || decoded.content.length === 0))
      return failed(`The body is not valid ${encoding}.`)
    content = decoded.content
    isCut ||= decoded.isCut
  }
  return { content, encodings, isCut }
}

function decode(decoder: Transform, input: Buffer, bytesMax: number) {
  const parts: Buffer[] = []
  let bytes = 0
  return new Promise<{ content: Buffer; isCut: boolean; hasFailed: boolean }>((resolve) => {
    const end = (hasFailed: boolean) => {
      decoder.destroy()
      resolve({ content: Buffer.concat(parts).subarray(0, bytesMax), isCut: bytes > bytesMax, hasFailed })
    }
    decoder.on('data', (part: Buffer) => {
      parts.push(part)
      bytes += part.length
      if (bytes > bytesMax) end(false)
    })
    decoder.on('end', () => end(false))
    decoder.on('error', () => end(true))
    decoder.end(input)
  })
}
