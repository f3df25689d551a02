/** The body of a response is longer than its reader allows. */
export class ResponseTooLarge extends Error {
  override name = 'ResponseTooLarge'

  constructor(bytesMax: number) {
    super(`the response is larger than ${bytesMax} bytes`)
  }
}

/**
 * Reads the body of a response of `fetch` as text. `fetch` decompresses, so a few bytes of a hostile server
 * can become gigabytes: beyond the limit, the connection is closed and the rest is not decompressed.
 */
export async function readText({ body }: Response, bytesMax: number): Promise<string> {
  if (!body) return ''
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    bytes += part.value.length
    if (bytes > bytesMax) {
      reader.cancel().catch(() => undefined)
      throw new ResponseTooLarge(bytesMax)
    }
    text += decoder.decode(part.value, { stream: true })
  }
  return text + decoder.decode()
}
