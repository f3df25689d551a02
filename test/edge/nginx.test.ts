// A real nginx with the configuration that the documents show.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { atEnd, type Test } from '../support/cleanup.ts'
import { createFolder } from '../support/databases.ts'
import { freePort } from '../support/ports.ts'
import { root } from '../support/process.ts'
import { addEdge, serve } from '../support/server.ts'

const nginx = ['nginx', '/usr/sbin/nginx'].find((path) => spawnSync(path, ['-v']).status === 0)

test('nginx admits a good key, refuses a revoked one, and lets nobody through without Adit', async (t) => {
  if (!nginx) return t.skip('nginx is not installed here')
  const server = await serve(t, { engine: 'sqlite' })
  const edge = await addEdge(server)
  const application = createServer((request, response) => response.end(JSON.stringify(request.headers)))
  application.listen(0, '127.0.0.1')
  await once(application, 'listening')
  atEnd(t, () => application.close())
  const address = await startNginx(t, {
    '127.0.0.1:8080': new URL(server.url).host,
    '127.0.0.1:3000': `127.0.0.1:${(application.address() as AddressInfo).port}`,
    'adit_edge_THE-CREDENTIAL-OF-THIS-EDGE': edge.token,
  })
  const visit = (headers: Record<string, string> = {}, init: RequestInit = {}) =>
    fetch(address, { ...init, headers })
  const authorization = `Bearer ${server.key.token}`

  assert.equal((await visit()).status, 401)
  assert.equal((await visit({ authorization: `Bearer ${edge.token}` })).status, 401)
  const forged = { 'x-adit-workspace': 'other', 'x-adit-key-id': 'tok_other', 'x-adit-edge': 'x' }
  const admitted = await visit({ authorization, ...forged })
  assert.equal(admitted.status, 200)
  const seen = (await admitted.json()) as Record<string, string>
  assert.equal(seen['x-adit-workspace'], 'acme')
  assert.equal(seen['x-adit-key-id'], server.key.id)
  assert.equal(seen.authorization, undefined)
  const body = 'x'.repeat(50_000)
  assert.equal(
    (await visit({ authorization, 'content-type': 'text/plain' }, { method: 'POST', body })).status,
    200,
  )

  await server.call('DELETE', `/tokens/${server.key.id}`)
  assert.equal((await visit({ authorization })).status, 401)
  await server.stop()
  assert.equal((await visit({ authorization })).status, 500)
})

async function startNginx(t: Test, replacements: Record<string, string>): Promise<string> {
  const folder = createFolder(t)
  const port = await freePort()
  let configuration = readFileSync(join(root, 'docs/edges/nginx.conf'), 'utf8')
  for (const [shown, real] of Object.entries({ ...replacements, '127.0.0.1:8088': `127.0.0.1:${port}` })) {
    assert.ok(configuration.includes(shown), shown)
    configuration = configuration.replaceAll(shown, real)
  }
  // Where it may write, whoever runs the test.
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  )
  configuration = configuration.replace('http {', `http { access_log off; ${places.join(' ')}`)
  writeFileSync(join(folder, 'nginx.conf'), configuration)
  const directives = `daemon off; pid ${folder}/nginx.pid; error_log stderr;${process.getuid?.() === 0 ? ' user root;' : ''}`
  const child = spawn(nginx as string, ['-p', folder, '-c', join(folder, 'nginx.conf'), '-g', directives], {
    stdio: 'ignore',
  })
  const ended = once(child, 'exit')
  atEnd(t, () => {
    child.kill('SIGTERM')
    return ended
  })
  const url = `http://127.0.0.1:${port}/`
  for (let tries = 0; ; tries++) {
    assert.ok(tries < 100 && child.exitCode === null, 'nginx did not start')
    if (
      await fetch(url).then(
        () => true,
        () => false,
      )
    )
      return url
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
