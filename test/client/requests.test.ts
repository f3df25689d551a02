// The typed client, against a real server in both variants and against misbehaving ones.
import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import { after, test } from 'node:test'
import { AditError, createClient, type Fault } from '../../src/client/index.ts'
import { revoke } from '../../src/server/domain/keys/lifecycle.ts'
import { operator, serve } from '../support/api/server.ts'
import { addUsage } from '../support/api/usage.ts'
import type { Test } from '../support/cleanup.ts'
import { engines } from '../support/databases/create.ts'
import { simulateEdge } from '../support/edges/connected-edge.ts'
import { tunnelOf } from '../support/edges/open-tunnels.ts'
import { listen } from '../support/network/listen.ts'
import { pluck } from '../support/pluck.ts'
import { freePort } from '../support/processes/ports.ts'

const sqlite = await serve({ after }, { engine: 'sqlite' })

const catchFault = async (call: Promise<unknown>): Promise<Fault> => {
  try {
    await call
  } catch (error) {
    assert.ok(error instanceof AditError, String(error))
    return error.fault
  }
  assert.fail('it did not fail')
}

for (const engine of engines)
  test(`${engine}: every operation of variant A, and its faults`, async (t) => {
    const { url, key, services, workspace } = await serve(t, { engine })
    const client = createClient({ baseUrl: url, apiKey: key.token })
    assert.deepEqual(await client.workspace.read(), {
      slug: 'acme',
      name: 'Acme',
      provisioned: true,
      tunnelBase: 'acme.localhost',
    })
    const created = await client.tokens.create({ label: 'ci' })
    assert.match(created.token, /^adit_/)
    const { tokens } = await client.tokens.list({ limit: 1 })
    assert.deepEqual(pluck(tokens, 'id'), [created.id])
    assert.equal((await client.usage.read()).series.length, 30)
    assert.equal((await client.usage.read({ days: 7 })).series.length, 7)
    assert.equal(((await client.description.read()) as { openapi: string }).openapi, '3.1.1')
    assert.deepEqual(await client.tokens.revoke({ id: created.id }), { id: created.id, revoked: true })
    assert.deepEqual(await catchFault(client.tokens.revoke({ id: created.id })), { error: 'not_found' })
    const invalid = await catchFault(client.tokens.create({ label: 'x'.repeat(81) }))
    assert.ok(invalid.error === 'invalid_request' && invalid.details[0]?.path === '/body/label')
    await revoke({ ...services, actor: operator, workspaceId: workspace.id }, key.id)
    const refused = await catchFault(client.workspace.read())
    assert.ok(refused.error === 'unauthorized' && /revoked/.test(refused.message))
  })

for (const engine of engines)
  test(`${engine}: open tunnels are listed in pages and closed, and names and edges are listed`, async (t) => {
    const server = await serve(t, { engine })
    const client = createClient({ baseUrl: server.url, apiKey: server.key.token })
    const tunnel = tunnelOf(server)
    await simulateEdge(t, server, 'fra-1', [tunnel, tunnelOf(server, { name: 'other' })])
    const first = await client.tunnels.list({ limit: 1 })
    assert.equal(first.tunnels[0]?.name, 'my-app')
    const second = await client.tunnels.list({ limit: 1, cursor: first.next as string })
    assert.deepEqual([second.tunnels[0]?.name, second.next], ['other', null])
    assert.deepEqual(await client.tunnels.read({ id: tunnel.id }), first.tunnels[0])
    assert.deepEqual(await client.tunnels.close({ id: tunnel.id }), { id: tunnel.id, closed: true })
    for (const call of [client.tunnels.read, client.tunnels.close])
      assert.deepEqual(await catchFault(call({ id: tunnel.id })), { error: 'not_found' })
    assert.deepEqual(
      (await client.names.list()).names.map(({ name, open }) => [name, open]),
      [
        ['my-app', 0],
        ['other', 1],
      ],
    )
    assert.deepEqual(
      (await client.edges.list()).edges.map(({ name, tunnels }) => [name, tunnels]),
      [['fra-1', 1]],
    )
  })

test('variant B: reads only', async (t) => {
  const { url, key } = await serve(t, { engine: 'sqlite', env: { ADIT_API_VARIANT: 'B' } })
  const client = createClient<'B'>({ baseUrl: `${url}/`, apiKey: key.token })
  assert.equal((await client.workspace.read()).exampleUrl, 'my-app.acme.localhost')
  assert.equal((await client.usage.read({ days: 1 })).requests, 0)
  assert.equal((await client.tokens.list()).tokens.length, 1)
  const asA = createClient({ baseUrl: url, apiKey: key.token })
  assert.deepEqual(await catchFault(asA.tokens.create({})), { error: 'not_found' })
  assert.deepEqual(await client.tunnels.list(), { tunnels: [], next: null })
  const rejected = await catchFault(asA.tunnels.close({ id: 'tun_0000000000' }))
  assert.ok(rejected.error === 'forbidden' && rejected.message.includes(url), JSON.stringify(rejected))
})

test('counts above 2^53 are exact', async () => {
  const { url, key } = sqlite
  await addUsage(sqlite, { requests: 1n, bytesIn: 2n ** 53n + 1n })
  const { totalBytes } = await createClient({ baseUrl: url, apiKey: key.token }).usage.read({ days: 1 })
  assert.equal(totalBytes, 2n ** 53n + 1n)
})

/** A server in front of the real one, or instead of it. */
async function startServer(t: Test, onRequest: RequestListener): Promise<string> {
  const port = await listen(t, createServer(onRequest))
  return `http://127.0.0.1:${port}`
}

interface Misbehavior {
  /** The number of requests that get no usable response. */
  times: number
  /** Whether the server processes them nevertheless. */
  isProcessed: boolean
  respond: RequestListener
}

/** Misbehaves at the first requests, and proxies the others. */
async function startProxy(t: Test, { times, isProcessed, respond }: Misbehavior) {
  let requests = 0
  const baseUrl = await startServer(t, async (request, response) => {
    requests += 1
    const misbehaves = requests <= times
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    if (misbehaves && !isProcessed) return respond(request, response)
    const proxied = await fetch(sqlite.url + request.url, {
      method: request.method as string,
      headers: request.headers as Record<string, string>,
      ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
    })
    if (misbehaves) return respond(request, response)
    response.writeHead(proxied.status, { 'content-type': 'application/json' }).end(await proxied.text())
  })
  return { baseUrl, countRequests: () => requests }
}

const unavailable: RequestListener = (_request, response) =>
  response.writeHead(503, { 'retry-after': '0' }).end('{"error":"unavailable","message":"Not now."}')
const dropped: RequestListener = (_request, response) => response.destroy()
const garbage: RequestListener = (_request, response) => response.end('<html>gateway</html>')

for (const [failure, isProcessed, respond] of [
  ['503', false, unavailable],
  ['a connection that is dropped after the key was created', true, dropped],
  ['garbage instead of the response', true, garbage],
  ['a response after the timeout', true, () => {}],
] as const)
  test(`${failure}: the creation is retried, and one key is created`, async (t) => {
    const { baseUrl } = await startProxy(t, { times: 2, isProcessed, respond })
    const client = createClient({ baseUrl, apiKey: sqlite.key.token, timeoutMs: 800 })
    const created = await client.tokens.create({ label: failure })
    const { tokens } = (await sqlite.call('GET', '/tokens')).json
    assert.deepEqual(
      pluck(
        tokens.filter(({ label }: { label: string }) => label === failure),
        'id',
      ),
      [created.id],
    )
    assert.equal((await sqlite.call('GET', '/workspace', { key: created.token })).status, 200)
  })

for (const [failure, isProcessed, respond] of [
  ['gets no response', false, dropped],
  [
    'timed out at a proxy, and may have taken effect',
    true,
    (_request, response) => response.writeHead(504).end('<html>gateway timeout</html>'),
  ],
] as const satisfies readonly [string, boolean, RequestListener][])
  test(`a revocation is not retried if it ${failure}`, async (t) => {
    const { id } = (await sqlite.post('/tokens', {})).json
    const { baseUrl, countRequests } = await startProxy(t, { times: 9, isProcessed, respond })
    const client = createClient({ baseUrl, apiKey: sqlite.key.token })
    assert.equal((await catchFault(client.tokens.revoke({ id }))).error, 'unreachable')
    assert.equal(countRequests(), 1)
  })

test('responses of other servers are detected, and retried only if it may help', async (t) => {
  const cases: [status: number, body: string, error: Fault['error'], requests: number][] = [
    [200, '{}', 'unreadable', 2],
    [200, '[]', 'unreadable', 2],
    [302, '', 'unreadable', 1],
    [400, '{"error":"invalid_request"}', 'unreadable', 1],
    [401, '{"error":"Unauthorized"}', 'unauthorized', 1],
    [404, '<html>', 'unreadable', 1],
    [500, '{"error":"constructor"}', 'unreadable', 2],
    [503, '{"error":"Service Unavailable"}', 'unreachable', 2],
  ]
  let current: (typeof cases)[number] = [0, '', 'aborted', 0]
  let requests = 0
  const baseUrl = await startServer(t, (_request, response) => {
    requests += 1
    const [status, body] = current
    response.writeHead(status, { location: 'https://elsewhere.example/', 'retry-after': '0' }).end(body)
  })
  const client = createClient({ baseUrl, apiKey: 'k', retries: 1 })
  for (current of cases) {
    requests = 0
    const fault = await catchFault(client.workspace.read())
    assert.deepEqual([fault.error, requests], current.slice(2), String(current))
    assert.ok('message' in fault && fault.message.length > 10)
  }
})

test('a slow body times out too, and the delay between attempts grows', async (t) => {
  const slow = await startServer(t, (_request, response) => {
    response.writeHead(200).write('{"slug":')
  })
  const fault = await catchFault(
    createClient({ baseUrl: slow, apiKey: 'k', retries: 0, timeoutMs: 300 }).workspace.read(),
  )
  assert.equal(fault.error, 'timed_out')
  const measureGaps = async () => {
    const times: number[] = []
    const busy = await startServer(t, (_request, response) => {
      times.push(performance.now())
      response.writeHead(503).end('{"error":"unavailable","message":"Not now."}')
    })
    await catchFault(createClient({ baseUrl: busy, apiKey: 'k' }).workspace.read())
    assert.equal(times.length, 4)
    return times.slice(1).map((time, index) => time - (times[index] as number))
  }
  // Other work on the machine makes a gap longer, never shorter, so the shortest of several counts.
  const all = await Promise.all(Array.from({ length: 4 }, measureGaps))
  const gaps = [0, 1, 2].map((index) => Math.min(...all.map((one) => one[index] as number)))
  assert.ok((gaps[2] as number) > 2 * (gaps[0] as number), `${gaps.map(Math.round)} ms`)
})

test('an id that would change the path sends no request', async (t) => {
  let requests = 0
  const baseUrl = await startServer(t, (_request, response) => {
    requests += 1
    response.end('{"id":"x","revoked":true}')
  })
  const client = createClient({ baseUrl, apiKey: 'k' })
  for (const id of ['', '.', '..'])
    assert.deepEqual(await catchFault(client.tokens.revoke({ id })), { error: 'not_found' })
  assert.equal((await catchFault(client.tokens.revoke({ id: '\ud800' }))).error, 'invalid_request')
  assert.equal(requests, 0)
})

test('no attempt is earlier than Retry-After, up to 30 seconds', async (t) => {
  const measureWait = async () => {
    const times: number[] = []
    const limiting = await startServer(t, (_request, response) => {
      times.push(performance.now())
      const body = '{"error":"rate_limited","message":"Slow down."}'
      if (times.length < 2) response.writeHead(429, { 'retry-after': '1' }).end(body)
      else response.writeHead(200).end('{"slug":"acme","name":"Acme"}')
    })
    await createClient({ baseUrl: limiting, apiKey: 'k' }).workspace.read()
    return (times[1] as number) - (times[0] as number)
  }
  const shortest = Math.min(...(await Promise.all(Array.from({ length: 8 }, measureWait))))
  assert.ok(shortest > 990, `${shortest} ms`)
  const blocking = await startServer(t, (_request, response) =>
    response.writeHead(429, { 'retry-after': '3600' }).end('{"error":"rate_limited","message":"Slow down."}'),
  )
  const startedAt = performance.now()
  const fault = await catchFault(createClient({ baseUrl: blocking, apiKey: 'k' }).workspace.read())
  assert.equal(fault.error, 'rate_limited')
  assert.ok(performance.now() - startedAt < 5_000)
})

test('a call can be aborted, during an attempt and between attempts', async (t) => {
  const silent = await startServer(t, () => {})
  const busy = await startServer(t, (_request, response) =>
    response.writeHead(503, { 'retry-after': '20' }).end('{"error":"unavailable","message":"Not now."}'),
  )
  for (const baseUrl of [silent, busy]) {
    const startedAt = performance.now()
    const call = createClient({ baseUrl, apiKey: 'k' }).workspace.read(undefined, {
      signal: AbortSignal.timeout(300),
    })
    assert.equal((await catchFault(call)).error, 'aborted')
    assert.ok(performance.now() - startedAt < 5_000)
  }
})

test('unreachable, slow and foreign servers have distinct errors, and invalid options throw', async (t) => {
  const options = { apiKey: 'k', retries: 0, timeoutMs: 300 }
  const unreachable = await catchFault(
    createClient({ baseUrl: `http://127.0.0.1:${await freePort()}`, ...options }).workspace.read(),
  )
  assert.ok(
    unreachable.error === 'unreachable' && /cannot be reached: .*ECONNREFUSED/.test(unreachable.message),
  )
  const blocked = await catchFault(
    createClient({ baseUrl: 'http://127.0.0.1:9', ...options }).workspace.read(),
  )
  assert.ok(
    blocked.error === 'unreachable' &&
      /:9 cannot be reached: port 9 is reserved for another protocol, so no HTTP request is sent to it\.$/.test(
        blocked.message,
      ),
  )
  const silent = await catchFault(
    createClient({ baseUrl: await startServer(t, () => {}), ...options }).workspace.read(),
  )
  assert.ok(silent.error === 'timed_out' && /did not respond within 0\.3 s/.test(silent.message))
  const other = await startServer(t, garbage)
  const foreign = await catchFault(createClient({ baseUrl: other, ...options }).workspace.read())
  assert.ok(foreign.error === 'unreadable' && /is not from an Adit server/.test(foreign.message))
  let attempts = 0
  const countingFetch = (url: string, init: RequestInit) => {
    attempts += 1
    return fetch(url, init)
  }
  const https = { ...options, baseUrl: other.replace('http:', 'https:'), retries: 1, fetch: countingFetch }
  const plain = await catchFault(createClient(https).workspace.read())
  assert.match((plain as { message: string }).message, /does not speak TLS\. Use http:\/\/ instead/)
  assert.equal(attempts, 1)
  for (const baseUrl of ['adit.example.com', 'http://me:pw@host', 'http://host/?q', 'http://host/#h'])
    assert.throws(
      () => createClient({ baseUrl, apiKey: 'k' }),
      (error: Error) => /Invalid baseUrl/.test(error.message) && !error.message.includes('pw'),
    )
  for (const apiKey of ['', 'adit_SECRET\nline', 'a b'])
    assert.throws(
      () => createClient({ baseUrl: 'http://host', apiKey }),
      (error: Error) => /Invalid apiKey/.test(error.message) && !error.message.includes('SECRET'),
    )
})
