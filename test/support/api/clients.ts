// Clients that send requests to several nodes continuously, retry as documented, and record what was
// acknowledged.
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createLog } from '../../../src/lib/log.ts'
import { readConfig } from '../../../src/server/config/server.ts'
import { createKey } from '../../../src/server/domain/keys/lifecycle.ts'
import { createEdge } from '../../../src/server/domain/tunnels/edges.ts'
import { createWorkspace } from '../../../src/server/domain/workspaces/manage.ts'
import { openServices } from '../../../src/server/services.ts'
import { SECRET } from '../databases/migrated-databases.ts'
import { until } from '../until.ts'
import { assertKept, assertKnown, type Ledger } from './ledger.ts'
import { type Call, caller, operator, recordVerified, type TestResponse } from './server.ts'

/** The longest time to any response, in any state of the database. */
const RESPONSE_TIMEOUT_MS = 12_000
const RECOVERED_WITHIN_MS = 2_000
const PAUSE_MS = 150
/** More than the ten connections of a node's pool. */
const CONCURRENT_REQUESTS = 12

interface Secrets {
  /** An API key of the workspace `acme`. */
  key: string
  /** The credential of an edge. */
  edge: string
}

/** A workspace with a key, and an edge, in a database that may be empty. */
export async function populate(database: string): Promise<Secrets> {
  const config = readConfig({ ADIT_DATABASE_URL: database, ADIT_SECRET: SECRET })
  const services = await openServices(config, createLog('silent'), 10_000)
  const workspace = await createWorkspace(services, operator, {
    slug: 'acme',
    name: 'Acme',
    provisioned: true,
  })
  const key = await createKey(
    { ...services, actor: operator, workspaceId: workspace.id },
    { label: 'of the clients' },
  )
  const edge = await createEdge(services, operator, 'fra-1')
  await recordVerified({ services })
  await services.store.close()
  return { key: key.token, edge: edge.token }
}

/** When a request was sent, and how long its response took. */
interface SentRequest {
  what: string
  at: number
  ms: number
}

interface Clients {
  readonly ledger: Ledger
  /** Every request with the response 503. */
  readonly unavailable: readonly SentRequest[]
  /** The number of responses. */
  readonly responses: number
  readonly slowestMs: number
  /** Waits until enough creations, revocations and reports are in progress for a fault to affect some. */
  areRunning(): Promise<unknown>
  /** Asserts that more concurrent requests than a pool has connections succeed: none of these is dead. */
  assertServing(): Promise<void>
  /** Asserts that all requests succeed from two seconds after `back`, when the database was back. */
  assertRecovered(t: TestContext, back: number): Promise<void>
  /** Stops the clients; each first retries its last request until it succeeds. */
  finish(): Promise<void>
  /** Asserts that the database and each node have exactly what was acknowledged. */
  assertExact(database: string): Promise<void>
}

export function startClients(nodes: readonly string[], secrets: Secrets, count = 4): Clients {
  const apiCalls = nodes.map((url) => caller(`${url}/api/v1`, secrets.key))
  const edgeCalls = nodes.map((url) => caller(`${url}/edge/v1`, secrets.edge))
  const day = new Date().toISOString().slice(0, 10)
  const ledger: Ledger = {
    created: new Map(),
    revoked: new Set(),
    bytes: Array(count).fill(0),
    open: Array(count).fill(0),
  }
  const unavailable: SentRequest[] = []
  let responses = 0
  let slowestMs = 0
  let isStopped = false

  async function send(
    call: Call,
    method: string,
    path: string,
    init: Parameters<Call>[2],
  ): Promise<TestResponse> {
    const at = performance.now()
    const response = await call(method, path, init)
    const sent = { what: `${method} ${path}`, at, ms: Math.round(performance.now() - at) }
    responses += 1
    slowestMs = Math.max(slowestMs, sent.ms)
    assert.ok(sent.ms < RESPONSE_TIMEOUT_MS, `${sent.what} took ${sent.ms} ms`)
    if (response.status === 503) {
      unavailable.push(sent)
      assert.deepEqual(Object.keys(response.json), ['error', 'message'], response.text)
      assert.equal(response.json.error, 'unavailable')
      assert.ok(Number(response.headers.get('retry-after')) >= 1)
    }
    return response
  }

  /** Retries after a 503 until it succeeds. */
  async function sendUntilDone(
    call: Call,
    method: string,
    path: string,
    init: Parameters<Call>[2],
    expected: number,
  ) {
    for (let attempt = 1; ; attempt++) {
      const response = await send(call, method, path, init)
      // The revocation was committed although its response was lost.
      if (method === 'DELETE' && response.status === 404 && attempt > 1) return response
      if (response.status !== 503) {
        assert.equal(response.status, expected, `${method} ${path}: ${response.text}`)
        return response
      }
      await sleep(PAUSE_MS)
    }
  }

  async function createAndRevoke(call: Call, name: string, number: number): Promise<void> {
    const headers = { 'idempotency-key': `${name}-${number}` }
    const { id, token } = (await sendUntilDone(call, 'POST', '/tokens', { headers }, 201)).json
    assert.ok(!ledger.created.has(id), 'two creations returned the same key')
    ledger.created.set(id, token)
    await sendUntilDone(call, 'GET', '/usage?days=1', {}, 200)
    if (number % 3 !== 0) return
    await sendUntilDone(call, 'DELETE', `/tokens/${id}`, {}, 200)
    ledger.revoked.add(id)
    for (const other of apiCalls) {
      const { status } = await send(other, 'GET', '/workspace', { key: token })
      assert.ok(status === 401 || status === 503, `a revoked key got ${status}`)
    }
  }

  async function report(call: Call, client: number): Promise<void> {
    const bytesIn = (ledger.bytes[client] as number) + 1 + Math.floor(Math.random() * 1_000)
    ledger.bytes[client] = bytesIn
    const open = (ledger.open[client] as number) + Math.floor(Math.random() * 3)
    ledger.open[client] = open
    const counters = [{ workspace: 'acme', day, requests: 1, bytesIn, bytesOut: 0, events: 0 }]
    const minute = `${day}T00:${String(client).padStart(2, '0')}:00.000Z`
    const tunnels = [{ workspace: 'acme', minute, open }]
    const json = { epoch: `client-${client}`, counters, tunnels }
    await sendUntilDone(call, 'POST', '/usage', { json }, 200)
  }

  const work = Promise.all(
    Array.from({ length: count }, async (_, client) => {
      const node = client % nodes.length
      const name = `client-${client}-${Math.random()}`
      for (let number = 0; !isStopped; number++) {
        await createAndRevoke(apiCalls[node] as Call, name, number)
        await report(edgeCalls[node] as Call, client)
        await sleep(PAUSE_MS)
      }
    }),
  )
  // Reported by finish(); until then the test asserts other things.
  work.catch(() => {})

  const clients: Clients = {
    ledger,
    unavailable,
    get responses() {
      return responses
    },
    get slowestMs() {
      return slowestMs
    },
    areRunning: () => until('the clients are running', () => ledger.created.size >= 3 * count),
    async assertServing() {
      const statuses = await Promise.all(
        apiCalls.flatMap((call) =>
          Array.from({ length: CONCURRENT_REQUESTS }, async (_, index) =>
            index % 2 === 0
              ? (await call('GET', '/usage?days=1')).status
              : (await call('DELETE', '/tokens/tok_none')).status,
          ),
        ),
      )
      assert.deepEqual([...new Set(statuses)].toSorted(), [200, 404])
    },
    async assertRecovered(t, back) {
      await sleep(back + RECOVERED_WITHIN_MS - performance.now())
      await clients.assertServing()
      await sleep(1_000)
      await clients.finish()
      const last = Math.round(Math.max(...unavailable.map(({ at }) => at)) - back)
      t.diagnostic(
        `${responses} responses, ${unavailable.length} of them 503; the last of these was requested ` +
          `${last} ms after the database was back; the slowest took ${slowestMs} ms; ` +
          `${ledger.created.size} keys`,
      )
      const late = unavailable.filter(({ at }) => at > back + RECOVERED_WITHIN_MS)
      assert.deepEqual(late, [])
    },
    async finish() {
      isStopped = true
      await work
    },
    async assertExact(database) {
      await assertKept(ledger, database)
      for (const call of apiCalls) await assertKnown(ledger, call)
    },
  }
  return clients
}
