// The stream of revocations, as an edge reads it.
import assert from 'node:assert/strict'
import { hashSecret } from '../../../src/lib/credentials/secret.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { until } from '../../support/until.ts'

export interface ReceivedEvent {
  id?: string
  event?: string
  data?: string
  comment?: string
}

/** Collects the events of a stream; `until` waits for a state of them, and returns the milliseconds. */
export async function listen(t: Test, url: string, token: string, lastEventId?: string, query = '') {
  const gone = new AbortController()
  atEnd(t, () => gone.abort())
  const response = await fetch(`${url}/edge/v1/key-changes${query}`, {
    headers: {
      authorization: `Bearer ${token}`,
      ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
    },
    signal: gone.signal,
  })
  assert.equal(response.status, 200)
  assert.equal(response.headers.get('content-type'), 'text/event-stream')
  const received: ReceivedEvent[] = []
  let isOver = false
  void (async () => {
    let text = ''
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      text += Buffer.from(chunk).toString()
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const fields = text
          .slice(0, end)
          .split('\n')
          .map((line) => line.split(/: ?(.*)/s))
        received.push(Object.fromEntries(fields.map(([name, value]) => [name || 'comment', value])))
        text = text.slice(end + 2)
      }
    }
  })()
    .catch(() => {})
    .finally(() => {
      isOver = true
    })
  const untilReceived = (holds: (received: ReceivedEvent[]) => boolean, ms?: number) =>
    until('events of the stream', () => holds(received), ms)
  await untilReceived((list) => list.length > 0)
  return { received, until: untilReceived, isOver: () => isOver, disconnect: () => gone.abort() }
}

export const announces = (key: { id: string; token: string }) => (list: ReceivedEvent[]) =>
  list.some(
    ({ event, data }) => event === 'revoked' && data === JSON.stringify({ hash: hashSecret(key.token) }),
  )

/** The sequence, with which an id begins. */
export const parseSequence = (id = '') => Number.parseInt(id, 10)
