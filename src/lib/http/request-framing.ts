// How the body of a request is framed. Node's parser accepts more than one transfer coding, and other parsers
// find another end of such a body: what follows would be another request for them.

/** A request of Node's server. */
interface Request {
  readonly headers: { readonly 'transfer-encoding'?: string | undefined }
  readonly httpVersion: string
}

/** What the Transfer-Encoding of a request must be; undefined if it is. Otherwise close the connection. */
export function framingRule({ headers, httpVersion }: Request): string | undefined {
  // Node joins repeated headers with commas.
  const coding = headers['transfer-encoding']
  if (coding === undefined) return undefined
  if (httpVersion !== '1.1') return 'must not be used with HTTP/1.0'
  return coding === 'chunked' ? undefined : 'must be "chunked", and be given once'
}
