// Which requests may be served from the response cache. Anything unusual about a request is left to Fastify.
import type { IncomingMessage } from 'node:http'
import type { ClientReader } from '../server/client-address.ts'

export interface EligibilityOptions {
  readonly isStopping: () => boolean
  readonly client: ClientReader
  readonly trustsProxies: boolean
}

/** The result returns the client's IP address, or undefined if the request is not eligible. */
export function createEligibility({ isStopping, client, trustsProxies }: EligibilityOptions) {
  return (request: IncomingMessage): string | undefined => {
    if (isStopping() || !isEligible(request)) return undefined
    // Fastify's hook logs a warning about the ignored header.
    if (!trustsProxies && request.headers['x-forwarded-for'] !== undefined) return undefined
    return client.address(request)
  }
}

/** Eligible requests are not conditional, have one host and a known length, and keep the connection open. */
const isEligible = ({ httpVersionMinor, headers }: IncomingMessage): boolean =>
  httpVersionMinor === 1 &&
  headers.host?.includes(',') === false &&
  (headers.connection === undefined || headers.connection.toLowerCase() === 'keep-alive') &&
  headers['if-none-match'] === undefined &&
  headers['transfer-encoding'] === undefined &&
  headers.expect === undefined
