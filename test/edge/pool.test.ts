// Several tunnel clients that serve one name.
import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from '../support/cleanup.ts'
import { startStandaloneEdge } from '../support/edges/standalone-edge.ts'
import { startHttp } from '../support/edges/tunneled.ts'
import { fetchHost } from '../support/edges/tunnels.ts'
import { startProcess } from '../support/processes/process.ts'
import { until } from '../support/until.ts'

const WORKERS = 10
/** How long the local server takes, so that some requests are always in progress. */
const RESPONSE_MS = 20
const FAILOVER_MS = 1_000

const { edge, keys } = await startStandaloneEdge({ after }, ['acme'])
const host = 'app.acme.tunnels.test'
/** Requests that each local server has received. */
const served = [0, 0]
const locals = await Promise.all(
  served.map((_, index) =>
    startHttp({ after }, async (request, response) => {
      served[index] = (served[index] as number) + 1
      request.resume()
      await sleep(RESPONSE_MS)
      response.end('ok')
    }),
  ),
)

beforeEach(() => served.fill(0))

/** Resolves when the tunnel is open. */
async function joinPool(t: Test, index: number, ...options: string[]) {
  const target = `127.0.0.1:${locals[index]?.port}`
  const args = ['tunnel', target, '--name', 'app', '--edge', edge.url, '--json', ...options]
  const client = startProcess(t, args, { ADIT_API_KEY: keys[0] as string })
  await client.waitFor(/"event":"open"/)
  return client
}

/** Sends requests until `stop`, which returns those that failed. */
function sendRequests(methods: string[]) {
  const failed: { at: number; what: string }[] = []
  let completed = 0
  let isStopped = false
  const work = async (_: unknown, worker: number) => {
    const method = methods[worker % methods.length] as string
    while (!isStopped) {
      const body = Buffer.from(method === 'POST' ? 'body' : '')
      const what = await fetchHost(edge, host, { method, body }).then(
        ({ status }) => String(status),
        (error: Error) => error.message,
      )
      if (what === '200') completed += 1
      else failed.push({ at: performance.now(), what })
    }
  }
  const workers = Array.from({ length: WORKERS }, work)
  return {
    completed: () => completed,
    async stop() {
      isStopped = true
      await Promise.all(workers)
      return failed
    },
  }
}

const bothServe = () => until('both clients serve requests', () => served.every((count) => count > 5))

test('without --pool, a second client of a name is rejected', async (t) => {
  await joinPool(t, 0)
  await assert.rejects(joinPool(t, 1), /name_taken/)
})

test('one second after a client of a pool was killed, no GET fails', async (t) => {
  const [killed] = [await joinPool(t, 0, '--pool'), await joinPool(t, 1, '--pool')]
  const load = sendRequests(['GET'])
  await bothServe()
  killed.child.kill('SIGKILL')
  const killedAt = performance.now()
  await until('a second has passed', () => performance.now() - killedAt > FAILOVER_MS)
  const completed = load.completed()
  await until('the other client serves requests', () => load.completed() > completed + 50)
  const failed = await load.stop()
  t.diagnostic(`${failed.length} requests failed in the first second`)
  assert.deepEqual(
    failed.filter(({ at }) => at - killedAt > FAILOVER_MS),
    [],
  )
})

test('when a client of a pool is stopped, no request fails', async (t) => {
  const [stopped] = [await joinPool(t, 0, '--pool'), await joinPool(t, 1, '--pool')]
  const load = sendRequests(['GET', 'POST'])
  await bothServe()
  stopped.child.kill('SIGTERM')
  const { code, stderr } = await stopped.ended
  const completed = load.completed()
  await until('the other client serves requests', () => load.completed() > completed + 50)
  assert.deepEqual(await load.stop(), [])
  assert.equal(code, 0, stderr)
})
