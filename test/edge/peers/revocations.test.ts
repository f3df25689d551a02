// A forwarded request ends when either edge has applied the revocation of the key.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { copyFileSync, readFileSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { openTokensFile } from '../../../src/edge-sdk/index.ts'
import type { Test } from '../../support/cleanup.ts'
import { createFolder } from '../../support/databases/create.ts'
import { PeerEdges } from '../../support/edges/peer-edges.ts'
import { openRawTunnel } from '../../support/edges/standalone-edge.ts'
import { fetchHost } from '../../support/edges/tunnels.ts'
import { run } from '../../support/processes/process.ts'
import { until } from '../../support/until.ts'

const HEAD = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'

/** A response through two edges that does not end. */
async function setUp(t: Test) {
  const cluster = await PeerEdges.create(t)
  const serving = await cluster.start('edge_serving')
  // The entry edge has the keys in another file, and so learns only what the test says.
  const file = join(createFolder(t), 'tokens.json')
  copyFileSync(cluster.file, file)
  const entry = await cluster.start('edge_entry', {
    startVerifier: (callbacks) => ({
      ...openTokensFile(file, { tunnelDomain: 'tunnels.test', ...callbacks }),
      cluster: cluster.view('edge_entry'),
    }),
  })
  const { host, onStream } = await openRawTunnel(serving, cluster.key, { name: 'app' })
  onStream((stream) => stream.on('data', () => stream.write(`${HEAD}1\r\nx\r\n`)))
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get({ port: entry.port, headers: { host }, agent: false }, resolve).on('error', reject)
  })
  let isClosed = false
  response.on('error', () => undefined)
  response.on('close', () => {
    isClosed = true
  })
  response.resume()
  const status = async (edge: { port: number }) => (await fetchHost(edge, host)).status
  return { cluster, serving, entry, isClosed: () => isClosed, status }
}

test('a forwarded request ends when the entry edge has applied the revocation, although the other has not', async (t) => {
  const { cluster, entry, isClosed, status } = await setUp(t)
  cluster.revoke('edge_entry', createHash('sha256').update('another key').digest('hex'))
  assert.equal(isClosed(), false)
  cluster.revoke('edge_entry', createHash('sha256').update(cluster.key).digest('hex'))
  await until('it has ended', isClosed)
  assert.equal(await status(entry), 404)
})

test('a forwarded request ends when the edge of the client has applied the revocation, although the entry edge has not', async (t) => {
  const { cluster, isClosed, status, entry } = await setUp(t)
  const { tokens } = JSON.parse(readFileSync(cluster.file, 'utf8'))
  await run(t, ['tokens-file', 'remove', tokens[0].id, '--file', cluster.file], {})
  await until('it has ended', isClosed)
  assert.equal(await status(entry), 404)
})
