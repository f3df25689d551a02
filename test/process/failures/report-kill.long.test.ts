// kill -9 during usage reports.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { caller, presentKey } from '../../support/api/server.ts'
import { atEnd } from '../../support/cleanup.ts'
import { createMigratedDatabase, engines } from '../../support/databases/create.ts'
import { freePort } from '../../support/processes/ports.ts'
import { run, startServing } from '../../support/processes/process.ts'
import { until } from '../../support/until.ts'

const EDGES = 4

for (const engine of engines)
  test(`${engine}: kill -9 while edges report loses and duplicates no acknowledged usage`, async (t) => {
    const port = String(await freePort())
    const env = {
      ADIT_DATABASE_URL: await createMigratedDatabase(t, engine),
      ADIT_LOG_LEVEL: 'silent',
      ADIT_PORT: port,
    }
    const json = async (...args: string[]) => JSON.parse((await run(t, [...args, '--json'], env)).stdout)
    await json('admin', 'workspace', 'create', 'acme')
    const { token } = await json('admin', 'key', 'create', '--workspace', 'acme')
    const base = `http://127.0.0.1:${port}`
    const day = new Date().toISOString().slice(0, 10)
    let isOver = false

    /** An edge whose `work` counts requests and reports its totals. */
    const addEdge = async (name: string) => {
      const { token: credential } = await json('admin', 'edge', 'create', name)
      const call = caller(`${base}/edge/v1`, credential)
      const total = { requests: 0, bytesIn: 0, bytesOut: 0, events: 0 }
      let acknowledged = 0
      const report = async () => {
        const sent = { ...total }
        const counters = [{ workspace: 'acme', day, ...sent }]
        const response = await call('POST', '/usage', { json: { epoch: 'e1', counters } })
        assert.equal(response.status, 200, response.text)
        acknowledged = sent.bytesIn + sent.bytesOut
      }
      return {
        total,
        credential,
        acknowledged: () => acknowledged,
        report,
        async work() {
          while (!isOver) {
            total.requests += 1
            total.bytesIn += 1 + Math.floor(Math.random() * 1000)
            total.bytesOut += 7
            await report().catch((error) => {
              if (error instanceof assert.AssertionError) throw error
            })
            await new Promise((resolve) => setTimeout(resolve, 2))
          }
        },
      }
    }
    const edges: Awaited<ReturnType<typeof addEdge>>[] = []
    for (let index = 0; index < EDGES; index++) edges.push(await addEdge(`edge-${index}`))
    const usage = async () => (await caller(`${base}/api/v1`, token)('GET', '/usage?days=2')).json
    const sum = (read: (edge: (typeof edges)[number]) => number) =>
      edges.reduce((total, edge) => total + read(edge), 0)

    let serving = await startServing(t, env)
    for (const { credential } of edges) await presentKey(base, credential, token)
    atEnd(t, () => {
      isOver = true
    })
    const working = Promise.all(edges.map((edge) => edge.work()))
    for (let kill = 0; kill < 3; kill++) {
      const before = sum(({ total }) => total.requests)
      const reported = until('edges report', () => sum(({ total }) => total.requests) >= before + 80)
      // Fails at once if an edge does.
      await Promise.race([reported, working])
      await serving.stop('SIGKILL')
      const acknowledged = sum((edge) => edge.acknowledged())
      serving = await startServing(t, env)
      const { totalBytes } = await usage()
      assert.ok(totalBytes >= acknowledged, `${totalBytes} of ${acknowledged} acknowledged bytes are stored`)
    }
    isOver = true
    await working
    for (const edge of edges) await edge.report()
    const { totalBytes } = await usage()
    assert.equal(
      totalBytes,
      sum(({ total }) => total.bytesIn + total.bytesOut),
    )
    t.diagnostic(`${sum(({ total }) => total.requests)} reports over 3 kills, ${totalBytes} bytes, exact`)
  })
