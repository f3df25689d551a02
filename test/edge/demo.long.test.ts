// `npm run demo`, as a new user runs it: every suggestion on its screen works.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { atEnd } from '../support/cleanup.ts'
import { createFolder } from '../support/databases/create.ts'
import { fetchHost } from '../support/edges/tunnels.ts'
import { freePort } from '../support/processes/ports.ts'
import { root } from '../support/processes/process.ts'
import { until } from '../support/until.ts'

const COLUMNS = 80

test('the demo runs everything, its suggestions work, and it deletes its data', async (t) => {
  const folder = createFolder(t)
  const [port, edgePort] = [String(await freePort()), String(await freePort())]
  const demo = spawn(process.execPath, [join(root, 'scripts/demo.ts')], {
    env: { PATH: process.env.PATH ?? '', TMPDIR: folder, ADIT_PORT: port, ADIT_EDGE_PORT: edgePort },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  atEnd(t, () => demo.kill('SIGINT'))
  let output = ''
  demo.stdout.on('data', (chunk) => {
    output += chunk
  })
  await until('it is ready', () => output.includes('Sending traffic'))
  const shown = (pattern: RegExp) => pattern.exec(output)?.[1] ?? assert.fail(output)
  // The folder of the test is deeper than that of a user.
  for (const line of output.replaceAll(folder, '/tmp').split('\n')) assert.ok(line.length <= COLUMNS, line)

  const { headers } = await fetch(shown(/Dashboard +(\S+)/), { redirect: 'manual' })
  const location = headers.get('location') as string
  assert.equal(location, `http://127.0.0.1:${port}/w/default/tunnels`)
  const cookie = headers
    .getSetCookie()
    .map((one) => one.split(';')[0])
    .join('; ')
  const session = await fetch(new URL('/dashboard/api/session', location), { headers: { cookie } })
  assert.equal(session.status, 200)

  const open = async (url: string, headers = {}) => {
    const { hostname, port } = new URL(url)
    assert.equal(port, edgePort)
    const { status, body } = await fetchHost({ port: Number(port) }, hostname, { headers })
    return `${status} ${body}`
  }
  const tunnel = shown(/curl (\S+)\//)
  assert.match(await open(tunnel), /^200 Hello from the sample web server/)
  const withPassword = shown(/With password +(\S+)/)
  assert.match(await open(withPassword), /^401 /)
  const [user, password] = [shown(/User (\w+)/), shown(/password (\S+)\./)]
  const authorization = `Basic ${btoa(`${user}:${password}`)}`
  assert.match(await open(withPassword, { authorization }), /^200 Hello/)

  const shell = async (command: string) => {
    const env = { PATH: process.env.PATH ?? '' }
    return (await promisify(execFile)('sh', ['-c', `. ${shown(/^ +\. (\S+)$/m)} && ${command}`], { env }))
      .stdout
  }
  await until('usage is reported', async () =>
    /Traffic +[1-9]/.test(await shell(shown(/(adit usage [^#]+)/))),
  )
  await shell(shown(/(adit keys revoke .+)/))
  await until('the tunnel is closed', () => output.includes('was closed: its key was revoked'))
  assert.match(await open(tunnel), /^404 /)

  demo.kill('SIGINT')
  const [code] = await once(demo, 'exit')
  assert.equal(code, 0)
  assert.ok(Number(shown(/(\d+) requests, [\d.]+ MB sent/)) > 0, output)
  assert.deepEqual(readdirSync(folder), [])
})
