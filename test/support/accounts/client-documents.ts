// Publishes metadata documents of agents over https, with a certificate that this process trusts.
import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { atEnd, type Test } from '../cleanup.ts'
import { listen } from '../network/listen.ts'
import { makeCertificate } from '../proxies/certificates.ts'

/** `url` is that of the request. */
export type RespondDocument = (response: ServerResponse, url: string) => unknown

export const sendJson = (document: object) => (response: ServerResponse) =>
  response.setHeader('content-type', 'application/json').end(JSON.stringify(document))

/** Undefined if openssl is not installed. */
export async function createPublisher(t: Test) {
  const files = makeCertificate(t, 'IP:127.0.0.1')
  if (!files) return undefined
  const [key, cert] = [readFileSync(files.key), readFileSync(files.certificate)]
  const trusted = getCACertificates('default')
  setDefaultCACertificates([...trusted, String(cert)])
  atEnd(t, () => setDefaultCACertificates(trusted))
  const publisher = {
    url: '',
    /** The paths of the requests. */
    requests: [] as string[],
    respond: (() => {}) as RespondDocument,
    publish(document: object) {
      publisher.respond = sendJson(document)
    },
  }
  const server = createServer({ key, cert }, (request, response) => {
    publisher.requests.push(request.url ?? '')
    publisher.respond(response, publisher.url + request.url)
  })
  publisher.url = `https://127.0.0.1:${await listen(t, server)}`
  return publisher
}
