// Long lists of keys are streamed in slices: complete for the reader, and without delaying other requests.
import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { createKey, revoke } from '../../../src/server/domain/keys/lifecycle.ts'
import { LongLists, streamFile } from '../../../src/server/http/operations/long-lists.ts'
import { rename } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { until } from '../../support/until.ts'
import { open, read, serveMany } from './many-keys.ts'

const MANY = 20_000

const listIds = (json: { tokens: { id: string }[] }) => json.tokens.map(({ id }) => id)

for (const engine of engines) {
  test(`${engine}: lists of any length are complete and in order, each key once`, async (t) => {
    const { server, ids } = await serveMany(t, engine, 2_600)
    const whole = await server.call('GET', '/tokens')
    assert.equal(whole.status, 200)
    assert.deepEqual(Object.keys(whole.json), ['tokens'])
    assert.deepEqual(listIds(whole.json), ids)
    assert.deepEqual(Object.keys(whole.json.tokens[2_000]), Object.keys(whole.json.tokens[0]))
    for (const from of [500, 1_599, 1_600, 1_601, 2_599, 2_600]) {
      const { json } = await server.call('GET', `/tokens?cursor=${ids[from]}`)
      assert.deepEqual(listIds(json), ids.slice(from + 1), `after ${from}`)
    }
  })

  test(`${engine}: up to 1,000 keys have an ETag, longer lists have none`, async (t) => {
    const { server, ids } = await serveMany(t, engine, 1_000)
    const whole = await server.call('GET', `/tokens?cursor=${ids[0]}`)
    assert.equal(whole.json.tokens.length, 1_000)
    const etag = whole.headers.get('etag') as string
    const cached = { headers: { 'if-none-match': etag } }
    assert.equal((await server.call('GET', `/tokens?cursor=${ids[0]}`, cached)).status, 304)
    for (const method of ['GET', 'HEAD']) {
      const long = await server.call(method, '/tokens', cached)
      assert.equal(long.status, 200)
      assert.equal(long.text === '', method === 'HEAD')
      assert.equal(long.headers.get('content-type'), 'application/json; charset=utf-8')
      assert.equal(long.headers.get('cache-control'), 'private, no-cache')
      assert.deepEqual([long.headers.get('etag'), long.headers.get('content-length')], [null, null])
    }
  })

  test(`${engine}: lists of 20,000 keys`, async (t) => {
    const { server, ids } = await serveMany(t, engine, MANY)
    const { ctx } = server

    await t.test(`${engine}: concurrent changes neither repeat nor hide keys of a list`, async () => {
      const response = await open(`${server.url}/api/v1/tokens`, server.key.token)
      const created = await createKey(ctx, { label: 'meanwhile' })
      await revoke(ctx, created.id)
      const listed = listIds(JSON.parse(await read(response)))
      assert.deepEqual(
        listed.filter((id) => id !== created.id),
        ids,
      )
      ids.unshift(created.id)
    })

    await t.test(`${engine}: a key that is revoked while it reads a list gets no further slice`, async () => {
      const reader = await createKey(ctx, { label: 'reader' })
      ids.unshift(reader.id)
      const response = await open(`${server.url}/api/v1/tokens`, reader.token)
      await revoke(ctx, reader.id)
      await assert.rejects(read(response), { code: 'ECONNRESET' })
    })

    await t.test(`${engine}: a workspace reads at most four long lists concurrently`, async () => {
      const list = () => open(`${server.url}/api/v1/tokens`, server.key.token)
      const close = async (responses: IncomingMessage[]) => {
        for (const response of responses) response.destroy()
        await until('lists are accepted', async () => (await server.call('HEAD', '/tokens')).status === 200)
      }
      const unread = await Promise.all(Array.from({ length: 4 }, list))
      const rejected = await server.call('GET', '/tokens')
      assert.equal(rejected.status, 429)
      assert.match(rejected.json.message, /read pages with \?limit=1000/)
      assert.equal((await server.call('GET', '/tokens?limit=1000')).status, 200)
      assert.equal((await server.call('HEAD', '/tokens')).status, 429)
      await close(unread)
      for (let round = 0; round < 8; round++) assert.equal((await server.call('HEAD', '/tokens')).status, 200)
      const again = await Promise.all(Array.from({ length: 4 }, list))
      for (const { statusCode } of again) assert.equal(statusCode, 200)
      await close(again)
    })

    await t.test(`${engine}: a list that fails midway aborts the connection`, async () => {
      const response = await open(`${server.url}/api/v1/tokens`, server.key.token)
      assert.equal(response.statusCode, 200)
      await rename(server, 'api_keys', 'api_keys_away')
      await assert.rejects(read(response), { code: 'ECONNRESET' })
      await rename(server, 'api_keys_away', 'api_keys')
      assert.equal((await server.call('GET', '/tokens?limit=1')).status, 200)
    })
  })
}

test('if a node sends 64 lists, the workspace with the most loses its oldest one, also if nobody reads it', async () => {
  const lists = new LongLists('Too many lists.')
  async function* slices() {
    for (;;) yield 'x'.repeat(100_000)
  }
  const openFor = (workspaceId: string) =>
    streamFile(lists.open(workspaceId, slices(), async () => undefined))
  const unread = Array.from({ length: 16 }, (_, index) => `ws-${index}`).map((workspaceId) =>
    Array.from({ length: 4 }, () => openFor(workspaceId).on('error', () => {})),
  )
  assert.throws(() => openFor('ws-0'), /Too many lists/)
  for (let index = 0; index < 16; index++) {
    const list = openFor(`other-${index}`)
    assert.equal(await new Promise((resolve) => list.once('data', (chunk) => resolve(chunk.length))), 100_000)
    await until(
      'a list is aborted',
      () => unread.flat().filter(({ destroyed }) => destroyed).length === index + 1,
    )
    unread.push([list])
  }
  for (const [oldest, ...others] of unread.slice(0, 16))
    assert.deepEqual(
      [oldest, ...others].map((list) => list?.destroyed),
      [true, false, false, false],
    )
  for (const list of unread.flat()) list.destroy()
})
