// The delay and the memory that the largest batches cause.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { engines } from '../support/databases/create.ts'
import { assertUndelayed } from '../support/network/latency.ts'
import { peakBytes } from '../support/processes/resources.ts'
import { postMessage } from './agent.ts'
import { BATCH_MAX, createBatch, PER_KEY_MAX, startNode } from './large-batches.ts'

const RESPONSE_BYTES_MAX = 3 * 1024 * 1024
const GROWTH_MAX_BYTES = 400 * 1024 * 1024
const LOAD_MS = 1_500

for (const engine of engines)
  test(`${engine}: four clients that send the largest batches delay other requests by less than 300 ms, and memory stays bounded`, async (t) => {
    const { node, access } = await startNode(t, engine)
    const pid = node.child.pid as number
    const before = peakBytes(pid)
    const targets = [{ url: `${node.api}/workspace`, key: access.apiKey }, { url: `${node.url}/healthz` }]
    const send = async (until: number) => {
      while (performance.now() < until) {
        const response = await postMessage(access, createBatch(BATCH_MAX))
        assert.equal(response.status, 200)
        const { byteLength } = await response.arrayBuffer()
        assert.ok(byteLength < RESPONSE_BYTES_MAX, `a response of ${byteLength} bytes`)
      }
    }
    await assertUndelayed(t, targets, () => {
      const end = performance.now() + LOAD_MS
      return Promise.all(Array.from({ length: PER_KEY_MAX }, () => send(end)))
    })
    const grown = peakBytes(pid) - before
    t.diagnostic(`memory grew by ${Math.round(grown / 2 ** 20)} MiB`)
    assert.ok(grown < GROWTH_MAX_BYTES, `memory grew by ${grown} bytes`)
  })
