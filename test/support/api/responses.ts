// A strict HTTP/1.1 response parser: it detects a second response to a request, and an incomplete one.
export interface RawResponse {
  status: number
  closes: boolean
  body: string
}

interface ParsedResponses {
  responses: RawResponse[]
  /** Bytes after the last complete response. */
  rest: Buffer
  /** After 101 the connection is no longer HTTP. */
  switched: boolean
}

/** `methods` of the requests in order: a response to HEAD has no body. */
export function parseResponses(bytes: Buffer, methods: readonly string[]): ParsedResponses {
  const responses: RawResponse[] = []
  let rest = bytes
  while (rest.length > 0) {
    const end = rest.indexOf('\r\n\r\n')
    if (end < 0) break
    const head = rest.subarray(0, end).toString('latin1')
    const [, digits] = /^HTTP\/1\.1 (\d{3})(?: |\r|$)/.exec(head) ?? []
    if (digits === undefined) throw new Error(`not a response: ${JSON.stringify(head.slice(0, 200))}`)
    const status = Number(digits)
    rest = rest.subarray(end + 4)
    if (status === 101) return { responses, rest, switched: true }
    if (status < 200) continue
    const closes = /^connection: close$/im.test(head)
    const isHead = methods[responses.length] === 'HEAD'
    // An error response to a malformed request always has a body.
    const hasBody = !isHead || (status === 400 && closes && rest.length > 0)
    const body = readBody(rest, head, status, hasBody)
    if (body === undefined)
      return { responses, rest: bytes.subarray(bytes.length - rest.length), switched: false }
    responses.push({ status, closes, body: body.text })
    rest = body.rest
  }
  return { responses, rest, switched: false }
}

/** Undefined if it is incomplete. */
function readBody(rest: Buffer, head: string, status: number, hasBody: boolean) {
  if (!hasBody || status === 204 || status === 304) return { text: '', rest }
  const length = /^content-length: *(\d+)$/im.exec(head)?.[1]
  if (length !== undefined) {
    const size = Number(length)
    return rest.length < size
      ? undefined
      : { text: rest.subarray(0, size).toString('utf8'), rest: rest.subarray(size) }
  }
  if (/^transfer-encoding: *chunked$/im.test(head)) return readChunks(rest)
  // Ends with the connection.
  return { text: rest.toString('utf8'), rest: rest.subarray(rest.length) }
}

function readChunks(given: Buffer) {
  let rest = given
  let text = ''
  for (;;) {
    const line = rest.indexOf('\r\n')
    if (line < 0) return undefined
    const size = Number.parseInt(rest.subarray(0, line).toString('latin1'), 16)
    if (!(size >= 0))
      throw new Error(`not a chunk: ${JSON.stringify(rest.subarray(0, 50).toString('latin1'))}`)
    if (rest.length < line + 2 + size + 2) return undefined
    text += rest.subarray(line + 2, line + 2 + size).toString('utf8')
    rest = rest.subarray(line + 2 + size + 2)
    if (size === 0) return { text, rest }
  }
}
