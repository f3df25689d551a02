// Large batches and many parallel requests are limited, and do not delay other requests.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { McpSlots } from '../../src/server/http/api/mcp-slots.ts'
import { serve } from '../support/api/server.ts'
import { pluck } from '../support/pluck.ts'
import { until } from '../support/until.ts'
import { type Access, callMessage, postMessage } from './agent.ts'
import { BATCH_MAX, createBatch, listCall, PER_KEY_MAX, startNode } from './large-batches.ts'

const PER_WORKSPACE_MAX = 8

interface Response {
  id: number
  result?: { isError?: boolean; structuredContent: { tokens: object[] } }
  error?: { code: number; message: string }
}

test('a batch has at most 10 messages, each request with a unique id', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const access = { url: server.url, apiKey: server.key.token }
  const small = (await (await postMessage(access, createBatch(BATCH_MAX))).json()) as Response[]
  assert.deepEqual(
    small.map(({ id, result }) => [id, result?.structuredContent.tokens.length]),
    Array.from({ length: BATCH_MAX }, (_, id) => [id, 1]),
  )
  const rejected = await postMessage(access, createBatch(BATCH_MAX + 1))
  assert.equal(rejected.status, 400)
  assert.deepEqual(await rejected.json(), {
    jsonrpc: '2.0',
    error: {
      code: -32600,
      message: 'Too many messages in the batch (at most 10). Send the others in further requests.',
    },
    id: null,
  })
  const duplicates = await postMessage(access, [listCall(1), listCall(1)])
  assert.equal(duplicates.status, 400)
  assert.match(await duplicates.text(), /Each request in a batch needs a unique id/)
})

test('after 1 MiB of results, the remaining calls of a batch are rejected before they run', async (t) => {
  const { access } = await startNode(t, 'sqlite')
  const create = callMessage(99, 'create_api_key', { label: 'never created' })
  const batch = [...createBatch(BATCH_MAX - 1), create]
  const responses = (await (await postMessage(access, batch)).json()) as Response[]
  assert.deepEqual(
    pluck(responses, 'id'),
    batch.map(({ id }) => id),
  )
  assert.equal(responses[0]?.result?.structuredContent.tokens.length, 1_000)
  assert.match(responses.at(-1)?.error?.message ?? '', /results of this batch .* separate request/)
  const listed = await (await postMessage(access, listCall(1))).text()
  assert.ok(listed.includes('revoked key') && !listed.includes('never created'))
})

test('a key has at most 4 requests in progress and its workspace 8; more are rejected until one has completed', async (t) => {
  const { access, addAccess } = await startNode(t, 'sqlite')
  const accesses = [access, await addAccess(), await addAccess()]
  const allSucceed = async (count: number) => {
    const sent = Array.from({ length: count }, () => postMessage(access, listCall(1)))
    const statuses = (await Promise.all(sent)).map(({ status }) => status)
    return statuses.every((status) => status === 200)
  }
  const send = (each: Access[]) => Promise.all(each.map((one) => postMessage(one, createBatch(BATCH_MAX))))

  const responsesOfOneKey = await send(Array(20).fill(access))
  const rejected = responsesOfOneKey.find(({ status }) => status === 429)
  assert.ok(rejected, 'none was rejected')
  assert.equal(rejected.headers.get('retry-after'), '1')
  const { error } = (await rejected.json()) as Response
  assert.equal(error?.code, -32000)
  assert.match(error?.message ?? '', /^rate_limited: This API key has 4 requests in progress\. Try again/)
  const { length: served } = responsesOfOneKey.filter(({ status }) => status === 200)
  assert.ok(served >= PER_KEY_MAX, `${served} were served`)
  for (const response of responsesOfOneKey) await response.arrayBuffer().catch(() => undefined)
  await until('the slots are free again', () => allSucceed(PER_KEY_MAX))

  const responsesOfAllKeys = await send(accesses.flatMap((one) => Array(PER_KEY_MAX).fill(one)))
  const texts = await Promise.all(responsesOfAllKeys.map((response) => response.text()))
  assert.ok(responsesOfAllKeys.filter(({ status }) => status === 200).length >= PER_WORKSPACE_MAX)
  assert.ok(texts.some((text) => text.includes('This workspace has 8 requests in progress.')))
})

test('slots are released when clients disconnect', async (t) => {
  const { access } = await startNode(t, 'sqlite')
  for (let round = 0; round < 5; round++) {
    const leaving = new AbortController()
    const sent = Array.from({ length: PER_KEY_MAX }, () =>
      fetch(`${access.url}/mcp`, {
        method: 'POST',
        signal: leaving.signal,
        headers: {
          authorization: `Bearer ${access.apiKey}`,
          accept: 'application/json, text/event-stream',
          'content-type': 'application/json',
        },
        body: JSON.stringify(createBatch(BATCH_MAX)),
      }).catch(() => undefined),
    )
    // While they are in progress, or at the latest when they are complete.
    const rejected = async () => (await postMessage(access, listCall(1))).status === 429
    await Promise.race([
      Promise.all(sent),
      until('one more is rejected', rejected).catch(() => Promise.all(sent)),
    ])
    leaving.abort()
    await Promise.all(sent)
  }
  await until('the slots are free again', async () => {
    const again = Array.from({ length: PER_KEY_MAX }, () => postMessage(access, listCall(1)))
    return (await Promise.all(again)).every(({ status }) => status === 200)
  })
})

test('slots are released when clients disconnect before their key is verified', async (t) => {
  // With PostgreSQL, a key that is not cached is verified in a later turn of the event loop.
  const { access, addAccess } = await startNode(t, 'postgres')
  const { hostname, port } = new URL(access.url)
  for (let round = 0; round < 4 * PER_WORKSPACE_MAX; round++) {
    const { apiKey } = await addAccess()
    const socket = connect(Number(port), hostname)
    const head = `POST /mcp HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${apiKey}\r\nContent-Length: 0\r\n\r\n`
    socket.write(head, () => socket.resetAndDestroy())
    socket.on('error', () => {})
    await once(socket, 'close')
  }
  await until('the slots are free', async () => {
    const sent = Array.from({ length: PER_KEY_MAX }, () => postMessage(access, listCall(1)))
    return (await Promise.all(sent)).every(({ status }) => status === 200)
  })
})

test('if a node has 32 requests in progress, the workspace with the most loses its oldest one', () => {
  const slots = new McpSlots()
  const displaced: string[] = []
  const take = (workspaceId: string, keyId: string) => {
    const slot = slots.acquire({ workspaceId, keyId: `${workspaceId}/${keyId}` })
    if ('displaced' in slot) slot.displaced.addEventListener('abort', () => displaced.push(workspaceId))
    return slot
  }
  for (const workspaceId of ['a', 'b', 'c', 'd'])
    for (let count = 0; count < PER_WORKSPACE_MAX; count++)
      assert.ok('release' in take(workspaceId, String(count % 2)), workspaceId)
  for (const workspaceId of ['e', 'f', 'g', 'e']) assert.ok('release' in take(workspaceId, ''))
  assert.deepEqual(displaced, ['a', 'b', 'c', 'd'])
  assert.match(JSON.stringify(take('a', '')), /This node has 32 requests in progress/)
  assert.ok('release' in take('h', ''))
})
