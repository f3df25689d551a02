import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { until } from '../support/until.ts'
import { readAll, sessionPair } from './support.ts'

test('bytes arrive in order, in both directions, and an ended side still receives', async (t) => {
  const { client, server } = await sessionPair(t)
  const near = client.session.open()
  near.end('request')
  await until('the stream is accepted', () => server.streams.length === 1)
  const [far] = server.streams
  assert.ok(far)
  assert.equal(String(await readAll(far)), 'request')
  const response = Buffer.alloc(3_000_000, 'response')
  far.end(response)
  assert.deepEqual(await readAll(near), response)
  await until('both sides forget the stream', () => client.session.streams + server.session.streams === 0)
})

test('a stream that the server opens works the same', async (t) => {
  const { client, server } = await sessionPair(t)
  const near = server.session.open()
  assert.equal(near.id, 2)
  near.write('hello')
  await until('the stream is accepted', () => client.streams.length === 1)
  const [far] = client.streams
  assert.ok(far)
  assert.equal(String((await once(far, 'data'))[0]), 'hello')
  far.end()
  near.end()
  await readAll(near)
})
