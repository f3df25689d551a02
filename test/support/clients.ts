// Clients that work on several nodes without pause, as the documentation asks them to, and write down what they are told.
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { readConfig } from '../../src/config.ts'
import { createEdge } from '../../src/domain/edges.ts'
import { createKey } from '../../src/domain/keys.ts'
import { createWorkspace } from '../../src/domain/workspaces.ts'
import { createLog } from '../../src/log.ts'
import { openServices } from '../../src/services.ts'
import { SECRET } from './databases.ts'
import { assertKept, assertKnown, type Ledger } from './ledger.ts'
import { type Answer, type Call, caller, operator } from './server.ts'
import { until } from './until.ts'

/** Nobody is left waiting for longer, whatever is wrong with the database. */
const ANSWERED_WITHIN_MS = 12_000
const RECOVERED_WITHIN_MS = 2_000
const PAUSE_MS = 60
/** A node has ten connections. */
const REQUESTS_AT_ONCE = 12

export interface Secrets {
  /** Of a key of the workspace `acme`. */
  key: string
  /** Of an edge. */
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
  const key = await createKey({ ...services, actor: operator, workspaceId: workspace.id }, 'of the clients')
  const edge = await createEdge(services, operator, 'fra-1')
  await services.store.close()
  return { key: key.token, edge: edge.token }
}

/** A request by when it was sent and how long its answer took. */
interface Asked {
  what: string
  at: number
  ms: number
}

export interface Clients {
  readonly ledger: Ledger
  /** Every request that was answered with 503. */
  readonly unavailable: readonly Asked[]
  readonly answered: number
  readonly slowestMs: number
  /** So many made, revoked and reported something that whatever happens now happens to somebody. */
  areAtWork(): Promise<unknown>
  /** New requests on each node, more at once than it has connections, are served: none is lent a connection that is dead. */
  assertServing(): Promise<void>
  /** The database was there again at that moment; two seconds later everybody is served, and stays so. */
  assertRecovered(t: TestContext, back: number): Promise<void>
  /** Each finishes what it is at: what was answered with 503 is repeated until it is done. */
  finish(): Promise<void>
  /** What is there, in the database and through each node, is exactly what was acknowledged. */
  assertExact(database: string): Promise<void>
}

export function startClients(nodes: readonly string[], secrets: Secrets, count = 4): Clients {
  const publicCalls = nodes.map((url) => caller(`${url}/api/v1`, secrets.key))
  const edgeCalls = nodes.map((url) => caller(`${url}/edge/v1`, secrets.edge))
  const day = new Date().toISOString().slice(0, 10)
  const ledger: Ledger = { created: new Map(), revoked: new Set(), bytes: Array(count).fill(0) }
  const unavailable: Asked[] = []
  let answered = 0
  let slowestMs = 0
  let over = false

  async function ask(call: Call, method: string, path: string, init: Parameters<Call>[2]): Promise<Answer> {
    const at = performance.now()
    const answer = await call(method, path, init)
    const asked = { what: `${method} ${path}`, at, ms: Math.round(performance.now() - at) }
    answered += 1
    slowestMs = Math.max(slowestMs, asked.ms)
    assert.ok(asked.ms < ANSWERED_WITHIN_MS, `${asked.what} took ${asked.ms} ms`)
    if (answer.status === 503) {
      unavailable.push(asked)
      assert.deepEqual(Object.keys(answer.json), ['error', 'message'], answer.text)
      assert.equal(answer.json.error, 'unavailable')
      assert.ok(Number(answer.headers.get('retry-after')) >= 1)
    }
    return answer
  }

  /** Again after a 503, until it is done. */
  async function insist(call: Call, method: string, path: string, init: Parameters<Call>[2], wanted: number) {
    for (let attempt = 1; ; attempt++) {
      const answer = await ask(call, method, path, init)
      // A revocation that was carried out although nobody could say so: then there is nothing left to revoke.
      if (method === 'DELETE' && answer.status === 404 && attempt > 1) return answer
      if (answer.status !== 503) {
        assert.equal(answer.status, wanted, `${method} ${path}: ${answer.text}`)
        return answer
      }
      await sleep(PAUSE_MS)
    }
  }

  async function makeAndRevoke(call: Call, name: string, number: number): Promise<void> {
    const headers = { 'idempotency-key': `${name}-${number}` }
    const { id, token } = (await insist(call, 'POST', '/tokens', { headers }, 201)).json
    assert.ok(!ledger.created.has(id), 'two creations were told the same key')
    ledger.created.set(id, token)
    await insist(call, 'GET', '/usage?days=1', {}, 200)
    if (number % 3 !== 0) return
    await insist(call, 'DELETE', `/tokens/${id}`, {}, 200)
    ledger.revoked.add(id)
    for (const other of publicCalls) {
      const { status } = await ask(other, 'GET', '/workspace', { key: token })
      assert.ok(status === 401 || status === 503, `a revoked key was answered with ${status}`)
    }
  }

  async function report(call: Call, client: number): Promise<void> {
    const bytesIn = (ledger.bytes[client] as number) + 1 + Math.floor(Math.random() * 1_000)
    ledger.bytes[client] = bytesIn
    const counters = [{ workspace: 'acme', day, requests: 1, bytesIn, bytesOut: 0, events: 0 }]
    const body = JSON.stringify({ epoch: `client-${client}`, counters })
    await insist(call, 'POST', '/usage', { body, headers: { 'content-type': 'application/json' } }, 200)
  }

  const work = Promise.all(
    Array.from({ length: count }, async (_, client) => {
      const node = client % nodes.length
      const name = `client-${client}-${Math.random()}`
      for (let number = 0; !over; number++) {
        await makeAndRevoke(publicCalls[node] as Call, name, number)
        await report(edgeCalls[node] as Call, client)
        await sleep(PAUSE_MS)
      }
    }),
  )
  // Told when they are asked to finish; until then the test is about something else.
  work.catch(() => {})

  const clients: Clients = {
    ledger,
    unavailable,
    get answered() {
      return answered
    },
    get slowestMs() {
      return slowestMs
    },
    areAtWork: () => until('the clients are at work', () => ledger.created.size >= 3 * count, 30_000),
    async assertServing() {
      const statuses = await Promise.all(
        publicCalls.flatMap((call) =>
          Array.from({ length: REQUESTS_AT_ONCE }, async (_, index) =>
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
        `${answered} answers, ${unavailable.length} of them 503, of which the last was asked for ${last} ms after the ` +
          `database was back; the slowest took ${slowestMs} ms; ${ledger.created.size} keys`,
      )
      const late = unavailable.filter(({ at }) => at > back + RECOVERED_WITHIN_MS)
      assert.deepEqual(late, [])
    },
    async finish() {
      over = true
      await work
    },
    async assertExact(database) {
      await assertKept(ledger, database)
      for (const call of publicCalls) await assertKnown(ledger, call)
    },
  }
  return clients
}
