// Fetches the metadata documents of agents, from the public addresses that webhooks are sent to, and with the
// limits of draft-ietf-oauth-client-id-metadata-document. Only signed-in users cause it.
import { type FetchDocument, UnknownClient } from '../domain/agents/clients.ts'
import { sendRequest } from '../outbound/request.ts'
import { TargetError, type Targets } from '../outbound/targets.ts'

const DOCUMENT_BYTES_MAX = 5 * 1_024
const TIMEOUT_MS = 5_000
/** Reads that a node has in progress at the same time. */
const FETCHES_MAX = 20
const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json *(?:;|$)/i

interface FetchOptions {
  targets: Targets
  userAgent: string
}

/** Rejects with `UnknownClient`, with a reason that does not describe the network of this server. */
export function createDocumentFetch(options: FetchOptions): FetchDocument {
  let fetches = 0
  return async (url) => {
    if (fetches >= FETCHES_MAX) throw failed('Too many are being read. Try again shortly.')
    fetches += 1
    try {
      return await readDocument(url, options)
    } catch (error) {
      if (error instanceof UnknownClient) throw error
      throw failed(error instanceof TargetError ? error.message : 'There was no response within 5 seconds.')
    } finally {
      fetches -= 1
    }
  }
}

async function readDocument(url: URL, { targets, userAgent }: FetchOptions): Promise<string> {
  const request = { method: 'GET', headers: { accept: 'application/json', 'user-agent': userAgent } } as const
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  const { status, headers, body } = await sendRequest(url, request, { targets, signal })
  if (status !== 200) throw failed(`The response has status ${status}; redirects are not followed.`)
  if (!JSON_TYPE.test(headers['content-type'] ?? '')) throw failed('The response is not application/json.')
  if (body.length > DOCUMENT_BYTES_MAX) throw failed('It is larger than 5 KiB.')
  return body.toString('utf8')
}

const failed = (reason: string) =>
  new UnknownClient(`The metadata document of the agent could not be read. ${reason}`)
