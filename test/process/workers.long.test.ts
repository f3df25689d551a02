// Several worker processes behind one port.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { connect, createServer } from 'node:net'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { populate, startClients } from '../support/api/clients.ts'
import { scrape } from '../support/api/metrics.ts'
import { atEnd } from '../support/cleanup.ts'
import { createMigratedDatabase, type Engine, engines } from '../support/databases/create.ts'
import { SECRET } from '../support/databases/migrated-databases.ts'
import { startProcess, startServing } from '../support/processes/process.ts'
import { workersOf } from '../support/processes/workers.ts'
import { until } from '../support/until.ts'

async function startWorkers(t: TestContext, engine: Engine) {
  const database = await createMigratedDatabase(t, engine)
  const secrets = await populate(database)
  const served = await startServing(t, {
    ADIT_DATABASE_URL: database,
    ADIT_WORKERS: '2',
    ADIT_METRICS_PORT: '0',
    ADIT_LOG_LEVEL: 'info',
  })
  const primary = served.child.pid as number
  await served.waitFor(/"worker listening"/, 'stderr')
  return { ...served, database, secrets, workers: () => workersOf(primary) }
}

/** On a connection of its own, to any of the workers, or on that of the agent. */
async function send(
  url: string,
  token: string,
  { method = 'GET', path = '/workspace', agent }: { method?: string; path?: string; agent?: Agent } = {},
) {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const headers = { authorization: `Bearer ${token}`, 'content-length': '0' }
  request(`${url}/api/v1${path}`, { method, headers, agent: agent ?? false }, resolve)
    .on('error', reject)
    .end()
  const response = await promise
  const json = JSON.parse(await text(response)) as { id: string; token: string }
  const [worker = ''] = String(response.headers['x-request-id']).split(/-\d+$/)
  return { status: response.statusCode, json, worker }
}

/** On a connection of its own. */
async function fetchOnce(url: string): Promise<void> {
  const response = await fetch(url, { headers: { connection: 'close' } })
  await response.body?.cancel()
  assert.equal(response.status, 200)
}

/** Connections that stay open, one to each of the two workers. */
async function connectToEachWorker(t: TestContext, url: string, token: string): Promise<Agent[]> {
  const byWorker = new Map<string, Agent>()
  while (byWorker.size < 2) {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    atEnd(t, () => agent.destroy())
    byWorker.set((await send(url, token, { agent })).worker, agent)
  }
  return [...byWorker.values()]
}

async function readiness(url: string, agent: Agent) {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const sent = request(`${url}/readyz`, { agent }, resolve).on('error', reject).end()
  const response = await promise
  response.resume()
  return { status: response.statusCode, isReused: sent.reusedSocket }
}

const create = { method: 'POST', path: '/tokens' }

for (const engine of engines) {
  test(`${engine}: workers are nodes of their own: none accepts a key after its revocation`, async (t) => {
    const { url, secrets, workers } = await startWorkers(t, engine)
    assert.equal(workers().length, 2)
    for (let round = 0; round < 5; round++) {
      const { json: key } = await send(url, secrets.key, create)
      for (let each = 0; each < 4; each++) assert.equal((await send(url, key.token)).status, 200)
      assert.equal(
        (await send(url, secrets.key, { method: 'DELETE', path: `/tokens/${key.id}` })).status,
        200,
      )
      for (let each = 0; each < 4; each++) assert.equal((await send(url, key.token)).status, 401)
    }
  })

  test(`${engine}: SIGHUP replaces the workers without a failed request, and SIGTERM stops them`, async (t) => {
    const { child, ended, url, database, secrets, workers, waitFor } = await startWorkers(t, engine)
    const clients = startClients([url], secrets)
    await clients.areRunning()
    const idle = await connectToEachWorker(t, url, secrets.key)
    const before = workers()
    child.kill('SIGHUP')
    await waitFor(/"stopping: completing open requests"/, 'stderr')
    // Longer than a worker that is stopped keeps idle connections, and shorter than one that is replaced.
    await sleep(1_500)
    for (const agent of idle) assert.deepEqual(await readiness(url, agent), { status: 200, isReused: true })
    await waitFor(/"workers restarted"/, 'stderr')
    assert.deepEqual([workers().length, workers().filter((pid) => before.includes(pid))], [2, []])
    await clients.finish()
    assert.deepEqual(clients.unavailable, [])
    if (engine === 'postgres') await clients.assertExact(database)
    const started = workers()
    child.kill('SIGTERM')
    assert.equal((await ended).code, 0)
    for (const pid of started) assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
  })
}

test('no new connection fails while workers are replaced, and none is accepted after they stop', async (t) => {
  const { child, ended, url, waitFor } = await startWorkers(t, 'sqlite')
  const port = Number(new URL(url).port)
  let isOver = false
  let count = 0
  const connectUntilOver = async () => {
    while (!isOver) {
      await fetchOnce(`${url}/healthz`)
      count += 1
    }
  }
  const clients = Promise.all(Array.from({ length: 20 }, connectUntilOver))
  child.kill('SIGHUP')
  await Promise.race([clients, waitFor(/"workers restarted"/, 'stderr')])
  isOver = true
  await clients
  t.diagnostic(`${count} connections`)
  child.kill('SIGTERM')
  assert.equal((await ended).code, 0)
  await assert.rejects(once(connect(port, '127.0.0.1'), 'connect'), { code: 'ECONNREFUSED' })
})

test('after a worker was killed, the others get its new connections, also while a replacement starts', async (t) => {
  const { url, workers, waitFor } = await startWorkers(t, 'sqlite')
  const [first, remaining] = workers() as [number, number]
  let killed = first
  for (let kills = 1; kills <= 3; kills++) {
    process.kill(killed, 'SIGKILL')
    await waitFor(new RegExp(`("worker exited; restarting".*){${kills}}`, 's'), 'stderr')
    await until('a replacement starts', () => workers().some((pid) => pid !== remaining))
    const [starting] = workers().filter((pid) => pid !== remaining) as [number]
    process.kill(starting, 'SIGSTOP')
    try {
      await Promise.all(Array.from({ length: 50 }, () => fetchOnce(`${url}/healthz`)))
    } finally {
      process.kill(starting, 'SIGCONT')
    }
    killed = starting
  }
  await waitFor(/("worker listening".*){2}/s, 'stderr')
})

/** Longer than workers may take to respond. */
const HANG_MS = 13_000

async function passTime(ms: number): Promise<void> {
  const endsAt = performance.now() + ms
  await until('the time is over', () => performance.now() > endsAt)
}

test('a worker that hangs is killed and replaced, and the other one keeps serving', async (t) => {
  const { url, secrets, workers, waitFor } = await startWorkers(t, 'sqlite')
  const agents = await connectToEachWorker(t, url, secrets.key)
  const [hung, other] = workers() as [number, number]
  process.kill(hung, 'SIGSTOP')
  await waitFor(/"worker does not respond; killing it"/, 'stderr')
  await until('it is replaced', () => workers().length === 2 && !workers().includes(hung))
  assert.ok(workers().includes(other))
  // The agent has noticed that its connection was reset.
  for (const agent of agents) assert.equal((await send(url, secrets.key, { agent })).status, 200)
})

test('workers that were stopped with their primary, as by a suspended machine, are not killed', async (t) => {
  const { child, url, secrets, workers } = await startWorkers(t, 'sqlite')
  const before = workers()
  const processes = [child.pid as number, ...before]
  for (const pid of processes) process.kill(pid, 'SIGSTOP')
  await passTime(HANG_MS)
  for (const pid of processes) process.kill(pid, 'SIGCONT')
  await passTime(2_000)
  assert.deepEqual(workers(), before)
  await connectToEachWorker(t, url, secrets.key)
})

test('SIGHUP also replaces a worker that was still starting', async (t) => {
  const { child, workers, waitFor } = await startWorkers(t, 'sqlite')
  const [killed, remaining] = workers() as [number, number]
  process.kill(killed, 'SIGKILL')
  await until('a replacement starts', () => workers().some((pid) => pid !== remaining && pid !== killed))
  const [starting] = workers().filter((pid) => pid !== remaining && pid !== killed) as [number]
  process.kill(starting, 'SIGSTOP')
  // A stopped process would keep the output of the server open.
  atEnd(t, () => workers().includes(starting) && process.kill(starting, 'SIGKILL'))
  child.kill('SIGHUP')
  await waitFor(/"restarting the workers one at a time"/, 'stderr')
  process.kill(starting, 'SIGCONT')
  await waitFor(/"workers restarted"/, 'stderr')
  assert.deepEqual(
    workers().filter((pid) => [starting, remaining].includes(pid)),
    [],
  )
  assert.equal(workers().length, 2)
})

test('a worker that is killed is replaced, and the combined counters do not decrease', async (t) => {
  const { url, metrics, secrets, workers } = await startWorkers(t, 'sqlite')
  const verified = async () =>
    (await scrape(metrics)).get('adit_verifications_total{kind="key",cache="hit",verdict="valid"}') as number
  for (let each = 0; each < 20; each++) await send(url, secrets.key)
  const before = await verified()
  assert.ok(before >= 16, `${before} of 20 requests were counted, and two were the first of their worker`)
  const [killed, other] = workers() as [number, number]
  process.kill(killed, 'SIGKILL')
  await until('another worker is started', () => workers().some((pid) => pid !== killed && pid !== other))
  assert.ok((await verified()) >= before)
  assert.equal((await send(url, secrets.key)).status, 200)
  assert.equal((await scrape(metrics)).get('adit_lease_valid'), 1)
})

test('a worker with many writes to SQLite leaves the others their share', async (t) => {
  const { url, secrets } = await startWorkers(t, 'sqlite')
  const connections = Array.from({ length: 14 }, () => new Agent({ keepAlive: true, maxSockets: 1 }))
  atEnd(t, () => {
    for (const agent of connections) agent.destroy()
  })
  const byWorker = new Map<string, Agent[]>()
  for (const agent of connections) {
    const { worker } = await send(url, secrets.key, { agent })
    byWorker.set(worker, [...(byWorker.get(worker) ?? []), agent])
  }
  const [many = [], [single] = []] = [...byWorker.values()]
  assert.ok(single && many.length > 1)
  const count = { many: 0, single: 0 }
  const isOver = () => count.single + count.many >= 300
  const createUntilOver = async (agent: Agent, counted: keyof typeof count) => {
    while (!isOver()) {
      assert.equal((await send(url, secrets.key, { ...create, agent })).status, 201)
      count[counted] += 1
    }
  }
  await Promise.all([
    ...many.map((agent) => createUntilOver(agent, 'many')),
    createUntilOver(single, 'single'),
  ])
  t.diagnostic(`${count.single} by one connection, ${count.many} by ${many.length} of the other worker`)
  assert.ok(count.single > 20, `${count.single} of ${count.single + count.many}`)
})

test('where sockets cannot be bound for the workers, they share one', async (t) => {
  // Like a system without SO_REUSEPORT.
  const replaceClass = [
    'import net from "node:net"',
    'import { syncBuiltinESMExports } from "node:module"',
    'net.BoundSocket = class { constructor() { throw Object.assign(new Error(), { code: "ENOTSUP" }) } }',
    'syncBuiltinESMExports()',
  ].join(';')
  const database = await createMigratedDatabase(t, 'sqlite')
  const { key } = await populate(database)
  const { url, waitFor } = await startServing(t, {
    ADIT_DATABASE_URL: database,
    ADIT_WORKERS: '2',
    ADIT_LOG_LEVEL: 'info',
    NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(replaceClass)}`,
  })
  await waitFor(/"worker listening"/, 'stderr')
  const agents = await connectToEachWorker(t, url, key)
  for (const agent of agents) assert.equal((await send(url, key, { agent })).status, 200)
})

test('an address in use, and an invalid number of workers, are reported once', async (t) => {
  const other = createServer().listen(0, '127.0.0.1')
  atEnd(t, () => other.close())
  await once(other, 'listening')
  const { port } = other.address() as { port: number }
  const database = await createMigratedDatabase(t, 'sqlite')
  const env = { ADIT_DATABASE_URL: database, ADIT_SECRET: SECRET, ADIT_PORT: String(port), ADIT_WORKERS: '2' }
  const inUse = await startProcess(t, ['serve'], env).ended
  assert.equal(inUse.code, 1)
  assert.equal(inUse.stderr.match(/Another program listens on/g)?.length, 1)
  const invalid = await startProcess(t, ['serve'], { ...env, ADIT_WORKERS: 'many' }).ended
  assert.equal(invalid.code, 2)
  assert.match(invalid.stderr, /ADIT_WORKERS must be/)
})

test('throttles and limits count the requests to all workers together', async (t) => {
  const database = await createMigratedDatabase(t, 'sqlite')
  const { key } = await populate(database)
  const { url, waitFor } = await startServing(t, {
    ADIT_DATABASE_URL: database,
    ADIT_WORKERS: '2',
    ADIT_LOG_LEVEL: 'info',
    ADIT_RATE_LIMIT: '20',
  })
  await waitFor(/"worker listening"/, 'stderr')
  const agents = await connectToEachWorker(t, url, key)
  const counted = (statuses: (number | undefined)[]) => statuses.filter((status) => status !== 429).length
  const limited: (number | undefined)[] = []
  for (let index = 0; index < 40; index++)
    limited.push((await send(url, key, { agent: agents[index % 2] as Agent })).status)
  assert.ok(counted(limited) <= 20, `${counted(limited)} requests of 20 in a minute`)
  const guess = (agent: Agent) => {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const headers = { origin: url, 'content-type': 'application/json' }
    request(`${url}/dashboard/api/sign-in`, { method: 'POST', headers, agent }, resolve)
      .on('error', reject)
      .end(JSON.stringify({ email: 'ann@example.com', password: 'wrong' }))
    return promise
  }
  const guesses: (number | undefined)[] = []
  for (let index = 0; index < 12; index++) {
    const response = await guess(agents[index % 2] as Agent)
    response.resume()
    guesses.push(response.statusCode)
  }
  assert.equal(counted(guesses), 5, guesses.join())
})
