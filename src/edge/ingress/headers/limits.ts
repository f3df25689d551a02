// Limits for the number of headers of a request to the edge. Node's parser limits their total size.
import type { IncomingMessage } from 'node:http'
import type { VisitorError } from '../../error-responses/causes.ts'

const HEADERS_MAX = 200
const CONNECTION_NAMES_MAX = 32

/** Undefined if the headers of a request are within the limits. */
export function headersError({ rawHeaders, headers }: IncomingMessage): VisitorError | undefined {
  if (rawHeaders.length > 2 * HEADERS_MAX)
    return tooLarge(`A request may have at most ${HEADERS_MAX} headers.`)
  // Node joins repeated Connection headers with commas.
  if (connectionNames(headers.connection ?? '').length > CONNECTION_NAMES_MAX)
    return tooLarge(`A request may have at most ${CONNECTION_NAMES_MAX} names in Connection.`)
  return undefined
}

const tooLarge = (detail: string): VisitorError => ({ cause: 'headers_too_large', detail })

/** The header names in the value of a Connection header, in lower case. */
export const connectionNames = (value: string) => value.toLowerCase().split(/[,\s]+/)
