// Limits of the connections to the control plane.
import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { atEnd } from '../support/cleanup.ts'
import { createMigratedDatabase } from '../support/databases/create.ts'
import { openDescriptors } from '../support/network/broken-connections.ts'
import { collectText } from '../support/network/collect.ts'
import { startServing } from '../support/processes/process.ts'
import { until } from '../support/until.ts'

const PER_CLIENT = 500
const DESCRIPTORS = 600
const GET = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'

async function start(t: TestContext, settings: Record<string, string> = {}, descriptors?: number) {
  const env = { ADIT_DATABASE_URL: await createMigratedDatabase(t, 'sqlite'), ADIT_LOG_LEVEL: 'warn' }
  const serving = await startServing(t, { ...env, ...settings }, descriptors)
  const log = collectText(serving.child.stderr)
  return { port: Number(new URL(serving.url).port), log, serving }
}

/** A connection that stays open after its response; undefined if the server closed it before. */
async function request(t: TestContext, port: number): Promise<Socket | undefined> {
  const socket = connect(port, '127.0.0.1')
  atEnd(t, () => void socket.destroy())
  socket.on('error', () => {})
  socket.write(GET)
  const { promise, resolve } = Promise.withResolvers<Buffer | undefined>()
  socket.once('data', resolve).once('close', () => resolve(undefined))
  const data = await promise
  if (data === undefined) return undefined
  assert.match(String(data), /^HTTP\/1.1 200 /)
  return socket
}

async function requestMany(t: TestContext, port: number, count: number) {
  const opened = await Promise.all(Array.from({ length: count }, () => request(t, port)))
  assert.ok(opened.every(Boolean), 'a connection was rejected')
  return opened
}

test('a client has at most 500 connections to the control plane, and the log has one warning', async (t) => {
  const { port, log } = await start(t)
  const [first] = await requestMany(t, port, PER_CLIENT)
  for (let count = 0; count < 5; count++) assert.equal(await request(t, port), undefined)
  first?.destroy()
  await until('there is room again', () => request(t, port))
  await until('the warning', () => log() !== '')
  assert.equal(log().match(/"client":"127\.0\.0\.1".*ADIT_TRUSTED_PROXIES/g)?.length, 1, log())
})

test('connections of a trusted proxy have no limit of their own', async (t) => {
  const { port, log } = await start(t, { ADIT_TRUSTED_PROXIES: '127.0.0.1' })
  await requestMany(t, port, PER_CLIENT + 100)
  assert.equal(log(), '')
})

test('connections leave descriptors for the rest of the process, and the log has a warning', async (t) => {
  const { port, log, serving } = await start(t, { ADIT_TRUSTED_PROXIES: '127.0.0.1' }, DESCRIPTORS)
  const unfinished: Socket[] = []
  atEnd(t, () => {
    for (const socket of unfinished) socket.destroy()
  })
  // More than fit, because those that are read too late count as idle and are closed.
  await until('the warning', () => {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    socket.write('GET /healthz HTTP/1.1\r\n')
    unfinished.push(socket)
    return /"limit":"total","max":344.*ulimit -n/.test(log())
  })
  const used = openDescriptors(serving.child.pid as number)
  assert.ok(used === undefined || used < DESCRIPTORS - 100, `${used} descriptors`)
  for (const socket of unfinished) socket.destroy()
  await until('there is room again', () => request(t, port))
})

test('idle connections make room for others when nearly all descriptors are in use', async (t) => {
  const { port, log } = await start(t, { ADIT_TRUSTED_PROXIES: '127.0.0.1' }, DESCRIPTORS)
  // A new connection also counts as idle until its request arrives, so one of them may have to be repeated.
  for (let count = 0; count < DESCRIPTORS; count++)
    assert.ok((await request(t, port)) ?? (await request(t, port)), `connection ${count} was rejected`)
  assert.equal(log(), '')
})
