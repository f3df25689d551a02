// A request that crosses between two workers while a revocation reaches one before the other. The workers are
// in this process, so that the test decides when each gets its notices; sockets and requests are real.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { VerifierCallbacks } from '../../../src/edge/options.ts'
import { startEdge } from '../../../src/edge/start.ts'
import { PrimaryConnection } from '../../../src/edge/workers/connection.ts'
import { EdgePrimary } from '../../../src/edge/workers/primary.ts'
import { openTokensFile } from '../../../src/edge-sdk/index.ts'
import { hashSecret } from '../../../src/lib/credentials/secret.ts'
import type { YamuxStream } from '../../../src/yamux/index.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { createFolder } from '../../support/databases/create.ts'
import { openRawTunnel } from '../../support/edges/standalone-edge.ts'
import { run } from '../../support/processes/process.ts'

type Notice = [name: string, args: unknown[]]

const EDGE_OPTIONS = {
  ...{ host: '127.0.0.1', port: 0, publicEndpoint: undefined, tcpHost: '127.0.0.1', localPorts: undefined },
  ...{ certificatesPerDay: 1, certificatesTotalPerDay: 1, trustedProxies: [] },
  onCertificatesLimited() {},
  onOpened() {},
  onClosed() {},
  onWrongPassword() {},
  onPortUnavailable() {},
  onConnectionsLimited() {},
  onUnnamedClient() {},
  onIgnoredProxy() {},
}

/** Workers of one edge, each with a port of its own. */
async function startWorkers(t: Test) {
  const file = join(createFolder(t), 'tokens.json')
  const key = (await run(t, ['tokens-file', 'add', 'acme', '--file', file], {})).stdout.trim()
  let callbacks: VerifierCallbacks | undefined
  const receivers = new Map<string, (...notice: Notice) => void>()
  /** Notices for workers that are held, in their order. */
  const held = new Map<string, Notice[]>()
  const primary = new EdgePrimary({
    ...EDGE_OPTIONS,
    ...{ startReporter: undefined, meter: undefined },
    startVerifier(on) {
      callbacks = on
      return openTokensFile(file, { tunnelDomain: 'tunnels.test' })
    },
    notify(worker, ...notice) {
      const waiting = held.get(worker)
      if (waiting) waiting.push(notice)
      else receivers.get(worker)?.(...notice)
    },
  })
  const start = async (id: string) => {
    const connection = new PrimaryConnection(
      id,
      {
        call: async (name, args) => primary.handleCall(id, name, args),
        notify: async (name, args) => primary.onNotice(id, name, args),
        onNotice: (listener) => receivers.set(id, listener),
      },
      false,
    )
    const worker = await startEdge({
      ...EDGE_OPTIONS,
      startVerifier: (on) => connection.startVerifier(on),
      startReporter: (on) => connection.startReporter(on),
      meter: connection.meter,
      worker: { sockets: [], primary: connection, socketPath: await connection.socketPath() },
    })
    atEnd(t, async () => {
      await worker.stop()
      primary.onGone(id)
    })
    return worker
  }
  atEnd(t, () => primary.stop())
  return {
    key,
    callbacks: callbacks as VerifierCallbacks,
    start,
    hold: (worker: string) => void held.set(worker, []),
    release(worker: string) {
      const waiting = held.get(worker) ?? []
      held.delete(worker)
      for (const notice of waiting) receivers.get(worker)?.(...notice)
    },
  }
}

const CHUNK = 64 * 1024
/**
 * For so many turns must the entry worker have bytes for the visitor, until they are those that do not fit.
 */
const POLLS = 30

/**
 * Responds, in chunks that fit into each window, until bytes stay at the entry worker because the visitor
 * does not read. Returns what completes the response there.
 */
async function respondUntilBlocked(stream: YamuxStream, bufferedBytes: () => number) {
  await once(stream, 'data')
  stream.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
  for (let polls = 0; polls < POLLS; polls++) {
    await sleep(5)
    if (bufferedBytes() > 0) continue
    polls = 0
    stream.write(`${CHUNK.toString(16)}\r\n${'x'.repeat(CHUNK)}\r\n`)
  }
  return async () => {
    stream.write('0\r\n\r\n')
    for (let polls = 0; polls < POLLS; polls++) await sleep(5)
  }
}

test('a response that crossed between workers during a revocation ends before that is acknowledged', async (t) => {
  const workers = await startWorkers(t)
  const [entry, serving] = [await workers.start('1'), await workers.start('2')]
  const tunnel = await openRawTunnel(serving, workers.key, { name: 'app' })
  const { bufferedBytes } = entry.metrics
  const blocked = new Promise<() => Promise<void>>((resolve) =>
    tunnel.onStream((stream) => resolve(respondUntilBlocked(stream, bufferedBytes))),
  )

  workers.hold('2')
  const revoked = workers.callbacks.onRevoked('tok_1', 'revoked', hashSecret(workers.key)) as Promise<void>
  // The first worker has applied the revocation, and the second one has not received it.
  const visitor = connect(Number(new URL(entry.url).port), '127.0.0.1')
  const closed = new Promise<string>((resolve) => {
    visitor.on('error', ({ code }: NodeJS.ErrnoException) => resolve(code ?? 'error'))
    visitor.on('end', () => resolve('complete'))
  })
  visitor.write(`GET / HTTP/1.1\r\nHost: ${tunnel.host}\r\nConnection: close\r\n\r\n`)
  const complete = await blocked
  await complete()
  workers.release('2')
  await revoked
  visitor.resume()
  assert.equal(await closed, 'ECONNRESET')
})
