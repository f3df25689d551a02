// One keep-alive connection, for tests about what a server keeps for a connection.
import { once } from 'node:events'
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http'
import { atEnd, type Test } from '../cleanup.ts'

export interface RawRequest {
  method: string
  path: string
  /** In this order, with duplicates. */
  headers: [name: string, value: string][]
  body?: string | undefined
}

export interface KeptResponse {
  status: number
  headers: [name: string, value: string][]
  body: string
}

export function keepAliveClient(t: Test, url: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  atEnd(t, () => agent.destroy())
  /** The request without its body. */
  function begin({ method, path, headers }: RawRequest): ClientRequest {
    const { host, hostname, port } = new URL(url)
    return request({ hostname, port, path, method, agent, headers: ['Host', host, ...headers.flat()] })
  }
  return {
    begin,
    send(spec: RawRequest): Promise<KeptResponse> {
      const sent = begin(spec)
      const received = responseTo(sent)
      sent.end(spec.body)
      return received
    },
  }
}

export async function responseTo(sent: ClientRequest): Promise<KeptResponse> {
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const { statusCode = 0, rawHeaders } = response
  let body = ''
  for await (const chunk of response.setEncoding('utf8')) body += chunk
  const names = rawHeaders.filter((_, index) => index % 2 === 0)
  return {
    status: statusCode,
    headers: names.map((name, index) => [name, rawHeaders[index * 2 + 1] as string]),
    body,
  }
}
