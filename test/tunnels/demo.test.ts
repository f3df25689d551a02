// `npm run demo`, as a newcomer would run it.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { atEnd } from '../support/cleanup.ts'
import { createFolder } from '../support/databases.ts'
import { root } from '../support/process.ts'
import { visit } from '../support/tunnels.ts'
import { until } from '../support/until.ts'

test('the demo runs everything, sends traffic through a tunnel, and leaves nothing behind', async (t) => {
  const folder = createFolder(t)
  const demo = spawn(process.execPath, [join(root, 'scripts/demo.ts')], {
    env: { PATH: process.env.PATH ?? '', TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  atEnd(t, () => demo.kill('SIGINT'))
  let said = ''
  demo.stdout.on('data', (chunk) => {
    said += chunk
  })
  await until('it is ready', () => said.includes('Traffic goes'), 30_000)
  const [, url = ''] = /curl (http:\S+)\//.exec(said) ?? assert.fail(said)
  const { hostname, port } = new URL(url)
  const { body } = await visit({ port: Number(port) }, hostname)
  assert.match(String(body), /Hello from the sample web server/)
  const [, link = ''] = /Dashboard +(http:\S+)/.exec(said) ?? assert.fail(said)
  assert.equal((await fetch(link)).status, 200)
  await new Promise((resolve) => setTimeout(resolve, 2_000))
  demo.kill('SIGINT')
  const [code] = await once(demo, 'exit')
  assert.equal(code, 0)
  const [, visits] = /(\d+) visits with/.exec(said) ?? assert.fail(said)
  assert.ok(Number(visits) >= 3, said)
  assert.deepEqual(readdirSync(folder), [])
})
