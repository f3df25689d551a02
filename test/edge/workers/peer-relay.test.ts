// What a worker passes on between another edge and its siblings.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { toConnection } from '../../../src/edge/peers/connection.ts'
import { Traffic } from '../../../src/edge/traffic.ts'
import { PeerRelay } from '../../../src/edge/workers/peer-relay.ts'
import { Siblings, siblingTransport } from '../../../src/edge/workers/siblings.ts'
import { Session } from '../../../src/yamux/index.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { createFolder } from '../../support/databases/create.ts'
import { until } from '../../support/until.ts'

const HOST = 'app.acme.tunnels.test'
const RELAY = '9'

/** A sibling that reads what it is told. */
async function startSibling(t: Test, id: string, siblings: Siblings) {
  const path = join(createFolder(t), id)
  let lines = ''
  const listener = await siblingTransport(id, path).listen((_id, socket) => {
    const session = new Session(toConnection(socket), {
      role: 'server',
      onStream: (stream) =>
        stream
          .on('error', () => {})
          .on('data', (chunk) => {
            lines += chunk
          }),
      onClose: () => {},
    })
    atEnd(t, () => session.close())
  })
  atEnd(t, () => listener.close())
  siblings.setSibling(id, path)
  return () => lines.split('\n').slice(0, -1)
}

test('a sibling that had the host describes it no longer when another one has it', async (t) => {
  const siblings = new Siblings(RELAY)
  const [first, second] = [await startSibling(t, '1', siblings), await startSibling(t, '2', siblings)]
  const relay = new PeerRelay(
    {
      siblings,
      transport: siblingTransport(RELAY, ''),
      pressure: { isHigh: false },
      traffic: new Traffic(() => true),
    },
    { send() {}, onGone() {} },
  )
  atEnd(t, () => relay.close())
  siblings.setLocation(HOST, '1', true)
  assert.ok(relay.describe(HOST))
  await until('the first sibling is asked', () => first().length > 0)
  // The client has moved, and the first sibling has not noticed yet.
  siblings.setLocation(HOST, '2', true)
  assert.ok(relay.describe(HOST))
  await until('the second sibling is asked', () => second().length > 0)
  await until('the first sibling is told', () => first().length > 1)
  const question = JSON.stringify({ describe: HOST })
  assert.deepEqual(first(), [question, JSON.stringify({ forget: HOST })])
  assert.deepEqual(second(), [question])
})
