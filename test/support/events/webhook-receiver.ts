// Receives webhooks on a loopback address, verifies them with the library for receivers, and responds as the
// test says.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import { atEnd, type Test } from '../cleanup.ts'

interface Received {
  id: string
  headers: IncomingMessage['headers']
  path: string
  // biome-ignore lint/suspicious/noExplicitAny: bodies of every event
  body: any
}

export type Respond = (response: ServerResponse, received: Received) => unknown

/** Ways to respond. */
export const responses = {
  ok: (response: ServerResponse) => response.writeHead(204).end(),
  failure: (response: ServerResponse) => response.writeHead(500).end('broken\u0000'),
  reset: (response: ServerResponse) => response.destroy(),
  /** Never. */
  hang: () => {},
} satisfies Record<string, Respond>

export async function startReceiver(
  t: Test,
  respond: Respond = responses.ok,
  { port = 0, host = '127.0.0.1' } = {},
) {
  const state = {
    /** Every request, also of repeated deliveries. */
    received: [] as Received[],
    respond,
    /** Requests without a valid signature are rejected if it is set. */
    secret: undefined as string | undefined,
    rejected: 0,
  }
  const server = createServer(async (request, response) => {
    const raw = await text(request).catch(() => undefined)
    if (raw === undefined) return
    try {
      if (state.secret) new Webhook(state.secret).verify(raw, request.headers as Record<string, string>)
    } catch {
      state.rejected += 1
      return response.writeHead(401).end()
    }
    const { headers, url: path = '' } = request
    const received = { id: String(headers['webhook-id']), headers, path, body: JSON.parse(raw) }
    state.received.push(received)
    return state.respond(response, received)
  })
  await new Promise<void>((resolve) => server.listen(port, host, resolve))
  const close = () =>
    new Promise((resolve) => {
      server.close(resolve)
      server.closeAllConnections()
    })
  atEnd(t, close)
  const address = server.address() as AddressInfo
  return Object.assign(state, {
    url: `http://${host}:${address.port}/hook`,
    port: address.port,
    close,
    /** As a receiver that ignores ids which it has seen. */
    unique: () => [...new Map(state.received.toReversed().map((each) => [each.id, each])).values()].reverse(),
  })
}
