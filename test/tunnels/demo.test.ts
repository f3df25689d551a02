// `npm run demo`, as a new user runs it.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { atEnd } from '../support/cleanup.ts'
import { createFolder } from '../support/databases.ts'
import { root } from '../support/process.ts'
import { fetchHost } from '../support/tunnels.ts'
import { until } from '../support/until.ts'

test('the demo starts everything, sends traffic through a tunnel, and deletes its data', async (t) => {
  const folder = createFolder(t)
  const demo = spawn(process.execPath, [join(root, 'scripts/demo.ts')], {
    env: { PATH: process.env.PATH ?? '', TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  atEnd(t, () => demo.kill('SIGINT'))
  let output = ''
  demo.stdout.on('data', (chunk) => {
    output += chunk
  })
  await until('it is ready', () => output.includes('Sending traffic'))
  const [, url = ''] = /curl (http:\S+)\//.exec(output) ?? assert.fail(output)
  const { hostname, port } = new URL(url)
  const { body } = await fetchHost({ port: Number(port) }, hostname)
  assert.match(String(body), /Hello from the sample web server/)
  const [, link = ''] = /^ +(http:\S+#\S+)$/m.exec(output) ?? assert.fail(output)
  assert.equal((await fetch(link)).status, 200)
  await new Promise((resolve) => setTimeout(resolve, 2_000))
  demo.kill('SIGINT')
  const [code] = await once(demo, 'exit')
  assert.equal(code, 0)
  const [, requests] = /(\d+) requests, [\d.]+ MB sent/.exec(output) ?? assert.fail(output)
  assert.ok(Number(requests) >= 3, output)
  assert.deepEqual(readdirSync(folder), [])
})
