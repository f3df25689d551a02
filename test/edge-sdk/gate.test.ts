// The example edge of the documentation, between a real application and a real control plane.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { addEdge, serve } from '../support/api/server.ts'
import { atEnd } from '../support/cleanup.ts'
import { createFolder } from '../support/databases/create.ts'
import { listen } from '../support/network/listen.ts'
import { freePort } from '../support/processes/ports.ts'
import { root } from '../support/processes/process.ts'
import { until } from '../support/until.ts'

test('the example edge admits a valid key, rejects a revoked one and reports usage', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const edge = await addEdge(server)
  const application = createServer((request, response) => {
    response.setHeader('x-saw-key', String(request.headers.authorization !== undefined))
    request.pipe(response)
  })
  await listen(t, application)
  const port = String(await freePort())
  const gate = spawn(process.execPath, [join(root, 'docs/edges/gate.ts')], {
    env: {
      ADIT_URL: server.url,
      ADIT_EDGE_KEY: edge.token,
      APPLICATION: `http://127.0.0.1:${(application.address() as AddressInfo).port}`,
      PORT: port,
      FOLDER: createFolder(t),
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  atEnd(t, () => gate.kill('SIGKILL'))
  let output = ''
  gate.stderr.on('data', (text) => {
    output += text
  })
  await until('the gate is listening', () => {
    assert.equal(gate.exitCode, null, output)
    return output.includes('Listening on port')
  })
  const send = (key: string) =>
    fetch(`http://127.0.0.1:${port}/x`, {
      method: 'POST',
      body: 'hello',
      headers: { authorization: `Bearer ${key}` },
    })

  const through = await send(server.key.token)
  assert.equal(through.status, 200)
  assert.equal(through.headers.get('x-saw-key'), 'false', 'the application does not see the key')
  assert.equal(await through.text(), 'hello')
  assert.equal((await send('adit_nonsense')).status, 401)

  const other = (await server.post('/tokens', {})).json
  assert.equal((await send(other.token)).status, 200)
  await server.call('DELETE', `/tokens/${other.id}`)
  await until('the revoked key is rejected', async () => (await send(other.token)).status === 401, 1_000)

  gate.kill('SIGTERM')
  assert.deepEqual(await once(gate, 'exit'), [0, null])
  const usage = (await server.call('GET', '/usage?days=2')).json
  // Each admitted request has 5 bytes in both directions. Some may follow the two above, before the
  // revocation.
  assert.ok(usage.totalBytes >= 20 && usage.totalBytes % 10 === 0, `${usage.totalBytes} bytes`)
})
