// Connections to the control plane that break at every byte.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Test } from '../support/cleanup.ts'
import { createMigratedDatabase } from '../support/databases/create.ts'
import { fetchHost } from '../support/edges/tunnels.ts'
import { openingsFor, randomCuts, type Surface } from '../support/network/broken-connections.ts'
import { run, startServing } from '../support/processes/process.ts'
import { amount, prefixes } from './form.ts'
import { withstand } from './withstand.ts'

/** A server process, and its two surfaces for programs. */
async function start(t: Test) {
  const env = { ADIT_DATABASE_URL: await createMigratedDatabase(t, 'sqlite'), ADIT_LOG_LEVEL: 'warn' }
  const edge = (await run(t, ['admin', 'edge', 'create', 'fra-1'], env)).stdout.trim()
  const serving = await startServing(t, env)
  const { token } = serving
  const port = Number(new URL(serving.url).port)
  const api: Surface = {
    host: 'adit',
    headers: `Authorization: Bearer ${token}\r\n`,
    get: '/api/v1/workspace',
    post: '/api/v1/tokens',
    body: '{"label":"a"}',
    more: {
      'large response': 'GET /docs/scalar.js HTTP/1.1\r\nHost: adit\r\n\r\n',
      'large responses and CONNECT':
        'GET /docs/scalar.js HTTP/1.1\r\nHost: adit\r\n\r\n'.repeat(10) +
        'CONNECT x:1 HTTP/1.1\r\nHost: adit\r\n\r\n',
    },
  }
  const edges: Surface = {
    host: 'adit',
    headers: `Authorization: Bearer ${edge}\r\n`,
    // A stream of server-sent events.
    get: '/edge/v1/key-changes',
    post: '/edge/v1/keys/verify',
    body: JSON.stringify({ key: token }),
  }
  const probe = async () => {
    const headers = { authorization: `Bearer ${token}` }
    const { status } = await fetchHost({ port }, 'adit', { path: '/api/v1/workspace', headers })
    assert.equal(status, 200)
  }
  return { target: { ...serving, port, probe }, api, edges }
}

const { target, api, edges } = await start({ after })

test('API: connections broken after every byte crash nothing and leak nothing', async (t) => {
  const made = await withstand(target, prefixes(openingsFor(api)))
  t.diagnostic(`${made} connections`)
})

test('edge API: connections broken after every byte crash nothing and leak nothing', async (t) => {
  const made = await withstand(target, prefixes(openingsFor(edges)))
  t.diagnostic(`${made} connections`)
})

test('concurrent broken connections of every kind crash nothing and leak nothing', async () => {
  const openings = [...openingsFor(api), ...openingsFor(edges)]
  const made = await withstand(target, randomCuts(openings, { seed: 'hostile', count: amount.cuts }))
  assert.equal(made, amount.cuts)
})
