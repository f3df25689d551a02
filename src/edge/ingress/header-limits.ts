// Limits for the number of headers of a request to the edge. Node's parser limits their total size.
import type { IncomingMessage } from 'node:http'

const HEADERS_MAX = 200
const CONNECTION_NAMES_MAX = 32

/** Why the headers of a request are rejected with 431; undefined if they are within the limits. */
export function headersError({ rawHeaders, headers }: IncomingMessage): string | undefined {
  if (rawHeaders.length > 2 * HEADERS_MAX) return `A request may have at most ${HEADERS_MAX} headers.`
  // Node joins repeated Connection headers with commas.
  if (connectionNames(headers.connection ?? '').length > CONNECTION_NAMES_MAX)
    return `A request may have at most ${CONNECTION_NAMES_MAX} names in Connection.`
  return undefined
}

/** The header names in the value of a Connection header, in lower case. */
export const connectionNames = (value: string) => value.toLowerCase().split(/[,\s]+/)
