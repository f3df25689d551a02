// Reads HTTP/1.1 responses strictly, so that a second answer to one request, or half of one, is seen.
export interface RawResponse {
  status: number
  closes: boolean
  body: string
}

export interface ParsedResponses {
  responses: RawResponse[]
  /** What is left after the last whole response. */
  rest: Buffer
  /** The connection has become something else: what follows is not HTTP. */
  switched: boolean
}

/** `methods`: of the requests, in order, because a response to HEAD has no body. */
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
    // The method of a request that is malformed is not known, so its refusal has a body.
    const hasBody = !isHead || (status === 400 && closes && rest.length > 0)
    const body = readBody(rest, head, status, hasBody)
    if (body === undefined)
      return { responses, rest: bytes.subarray(bytes.length - rest.length), switched: false }
    responses.push({ status, closes, body: body.text })
    rest = body.rest
  }
  return { responses, rest, switched: false }
}

/** Undefined where it has not all come. */
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
  // Up to the end of the connection.
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
