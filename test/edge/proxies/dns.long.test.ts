// Edges behind a name with several addresses (DNS round robin): who tries the next one when one refuses.
import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { startClusterEdge } from '../../support/edges/cluster-edges.ts'
import { newKey, openTunnel, startLocal, startPlane } from '../../support/edges/tunnels.ts'
import { freePort } from '../../support/processes/ports.ts'
import { root } from '../../support/processes/process.ts'
import { until } from '../../support/until.ts'

const ADDRESSES = ['127.0.1.1', '127.0.1.2', '127.0.1.3']
const isCurlInstalled = spawnSync('curl', ['--version']).status === 0
const skip =
  (process.platform !== 'linux' && 'only Linux has several loopback addresses') ||
  (!isCurlInstalled && 'curl is not installed here')

test('clients and visitors try the next address when an edge is gone', { skip }, async (t) => {
  const plane = await startPlane(t, ['acme'])
  const port = String(await freePort())
  // Nothing listens at the first address.
  const [second, third] = await Promise.all(
    ADDRESSES.slice(1).map((address) =>
      startClusterEdge(t, plane, address, { env: { ADIT_EDGE_HOST: address, ADIT_EDGE_PORT: port } }),
    ),
  )
  assert.ok(second && third)
  const local = await startLocal(t)
  const tunnel = await openTunnel(t, {
    edge: { url: `http://edges.example.com:${port}` },
    key: await newKey(plane, 'acme'),
    port: local.port,
    name: 'app',
    env: {
      NODE_OPTIONS: `--import=${join(root, 'test/support/network/several-addresses.js')}`,
      TEST_ADDRESSES: ADDRESSES.join(),
    },
  })
  const visit = async () => {
    const resolve = `${tunnel.host}:${port}:${ADDRESSES.join()}`
    const args = ['--silent', '--output', '/dev/null', '--write-out', '%{http_code} %{remote_ip}']
    const url = `http://${tunnel.host}:${port}/`
    const { stdout } = await promisify(execFile)('curl', [...args, '--resolve', resolve, url])
    return stdout
  }
  await until('the second edge serves the visitor', async () => (await visit()) === '200 127.0.1.2')
  second.child.kill('SIGKILL')
  await until('the third edge does', async () => (await visit()) === '200 127.0.1.3')
  assert.equal(tunnel.child.exitCode, null)
  assert.deepEqual(
    tunnel.events().flatMap(({ event }) => (event === 'request' ? [] : [event])),
    ['open', 'lost', 'open'],
  )
})
