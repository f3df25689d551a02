// What a worker passes on between another edge and the other workers.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { toConnection } from '../../../src/edge/peers/connection.ts'
import { Traffic } from '../../../src/edge/traffic.ts'
import { PeerRelay } from '../../../src/edge/workers/peer-relay.ts'
import { WorkerCluster, workerTransport } from '../../../src/edge/workers/worker-cluster.ts'
import { Session } from '../../../src/yamux/index.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { createFolder } from '../../support/databases/create.ts'
import { until } from '../../support/until.ts'

const HOST = 'app.acme.tunnels.test'
const RELAY = '9'

/** A worker that reads what it is told. */
async function startOther(t: Test, id: string, others: WorkerCluster) {
  const path = join(createFolder(t), id)
  let lines = ''
  const listener = await workerTransport(id, path).listen((_id, socket) => {
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
  others.setWorker(id, path)
  return () => lines.split('\n').slice(0, -1)
}

test('a worker that had the host describes it no longer when another one has it', async (t) => {
  const others = new WorkerCluster(RELAY)
  const [first, second] = [await startOther(t, '1', others), await startOther(t, '2', others)]
  const relay = new PeerRelay(
    {
      otherWorkers: others,
      transport: workerTransport(RELAY, ''),
      pressure: { isHigh: false },
      traffic: new Traffic(() => true),
    },
    { send() {}, onGone() {} },
  )
  atEnd(t, () => relay.close())
  others.setLocation(HOST, '1', true)
  assert.ok(relay.describe(HOST))
  await until('the first worker is asked', () => first().length > 0)
  // The client has moved, and the first worker has not noticed yet.
  others.setLocation(HOST, '2', true)
  assert.ok(relay.describe(HOST))
  await until('the second worker is asked', () => second().length > 0)
  await until('the first worker is told', () => first().length > 1)
  const question = JSON.stringify({ describe: HOST })
  assert.deepEqual(first(), [question, JSON.stringify({ forget: HOST })])
  assert.deepEqual(second(), [question])
})
