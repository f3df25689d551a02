// What the primary keeps for a worker that does not read.
import assert from 'node:assert/strict'
import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { join } from 'node:path'
import { test } from 'node:test'
import { sendTo } from '../../src/workers/messages.ts'
import { atEnd, type Test } from '../support/cleanup.ts'

async function startWorker(t: Test): Promise<Worker> {
  cluster.setupPrimary({ exec: join(import.meta.dirname, 'counting-worker.ts'), execArgv: [] })
  const worker = cluster.fork()
  atEnd(t, () => worker.process.kill('SIGKILL'))
  await once(worker, 'message')
  worker.process.kill('SIGSTOP')
  return worker
}

function send(worker: Worker, count: number): void {
  for (let each = 0; each < count; each += 1) sendTo(worker, { kind: 'adit:broadcast', payload: '' })
}

test('a worker that was stopped reads up to 100,000 messages that wait for it', async (t) => {
  const worker = await startWorker(t)
  send(worker, 99_999)
  sendTo(worker, { kind: 'adit:metrics-request' })
  worker.process.kill('SIGCONT')
  assert.equal((await once(worker, 'message'))[0], 99_999)
  sendTo(worker, { kind: 'adit:metrics-request' })
  await once(worker, 'message')
})

test('a worker that does not read 100,000 messages is killed', async (t) => {
  const worker = await startWorker(t)
  const exited = once(worker, 'exit')
  send(worker, 100_001)
  assert.equal((await exited)[1], 'SIGKILL')
})
