// A busy tunnel has a connection to each worker of the edge, so that no worker forwards its requests.
import assert from 'node:assert/strict'
import { Agent, get } from 'node:http'
import { test } from 'node:test'
import { scrape } from '../../support/api/metrics.ts'
import { openTunnel } from '../../support/edges/tunnels.ts'
import { until } from '../../support/until.ts'
import { CONNECTIONS, collectLog, startStandaloneWorkers } from './edge-workers.ts'

/** A slow machine needs a while to forward a hundred requests a second. */
const TIMEOUT_MS = 120_000

test('a busy tunnel gets a connection to each worker, and counts as one tunnel', async (t) => {
  const { edge, key, local } = await startStandaloneWorkers(t)
  const log = collectLog(edge)
  const { host } = await openTunnel(t, { edge, key, port: local.port, name: 'busy' })
  const agent = new Agent({ keepAlive: true })
  let isOver = false
  const statuses = new Set<number | undefined>()
  const visitors = Array.from({ length: CONNECTIONS }, async () => {
    while (!isOver)
      await new Promise<void>((resolve, reject) => {
        const request = get({ port: edge.port, headers: { host }, agent }, (response) => {
          statuses.add(response.statusCode)
          response.resume().on('end', resolve).on('error', reject)
        })
        request.on('error', reject)
      })
  })
  const opened = () => log.lines('tunnel opened').map(({ pid }) => pid)
  const connected = until('a connection to each worker', () => opened().length === 2, TIMEOUT_MS)
  await Promise.race([connected, ...visitors])
  const metrics = await scrape(JSON.parse((await edge.waitFor(/^\{.*\}$/m))[0]).metrics)
  isOver = true
  await Promise.all(visitors)
  agent.destroy()
  assert.equal(new Set(opened()).size, 2)
  assert.equal(metrics.get('adit_edge_tunnels_open{type="http"}'), 1)
  assert.deepEqual(statuses, new Set([200]))
})
