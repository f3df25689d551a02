// The delay and the memory that long lists cause.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { caller, databaseUrl } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { assertUndelayed } from '../../support/network/latency.ts'
import { startServing } from '../../support/processes/process.ts'
import { cpuTicks, peakBytes } from '../../support/processes/resources.ts'
import { until } from '../../support/until.ts'
import { open, read, serveMany } from './many-keys.ts'

const MANY = 20_000
const CONCURRENT_LISTS = 4
const UNREAD_LISTS = 20
/** Far less than all of these lists in memory. */
const GROWTH_MAX_BYTES = 60 * 1024 * 1024
/** So that garbage does not count as growth. */
const HEAP_MAX_MIB = 64

for (const engine of engines) {
  test(`${engine}: four lists of 20,000 keys delay other requests by less than 300 ms, in bounded memory`, async (t) => {
    const { server, ids } = await serveMany(t, engine, MANY)
    const node = await startServing(t, {
      ADIT_DATABASE_URL: databaseUrl(server),
      ADIT_LOG_LEVEL: 'silent',
      NODE_OPTIONS: `--max-old-space-size=${HEAP_MAX_MIB} --max-semi-space-size=2`,
    })
    const { token: key } = server.key
    const list = () => open(`${node.api}/tokens`, key).then(read)
    const pid = node.child.pid as number
    await caller(node.api, key)('GET', '/tokens?limit=1000')
    const before = peakBytes(pid)
    const targets = [{ url: `${node.api}/workspace`, key }, { url: `${node.url}/healthz` }]
    await assertUndelayed(t, targets, async () => {
      const texts = await Promise.all(Array.from({ length: CONCURRENT_LISTS }, list))
      for (const text of texts) assert.equal(JSON.parse(text).tokens.length, ids.length)
    })
    // Clients that do not read: slices are produced only as they are sent.
    const unread = await Promise.all(
      Array.from({ length: UNREAD_LISTS }, () => open(`${node.api}/tokens`, key)),
    )
    await until('the server is idle again', async () => {
      const before = cpuTicks(pid)
      await sleep(100)
      return cpuTicks(pid) - before <= 1
    })
    const growth = peakBytes(pid) - before
    t.diagnostic(`memory grew by ${Math.round(growth / 1024 / 1024)} MiB at the most`)
    assert.ok(growth < GROWTH_MAX_BYTES, `memory grew by ${growth} bytes`)
    for (const response of unread) response.destroy()
  })
}
