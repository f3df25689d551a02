// The commands of the README, run as written, with other ports and an empty home.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { atEnd, type Test } from '../support/cleanup.ts'
import { createFolder } from '../support/databases/create.ts'
import { fetchHost, startLocal } from '../support/edges/tunnels.ts'
import { freePorts } from '../support/processes/ports.ts'
import { root } from '../support/processes/process.ts'
import { until } from '../support/until.ts'

const blocks = [...readFileSync(join(root, 'README.md'), 'utf8').matchAll(/^```sh\n(.*?)^```/gms)]

/** A line of a shell, in a process group of its own: npm starts further processes. */
function runLine(t: Test, line: string, env: Record<string, string>, input = '') {
  const child = spawn('sh', ['-c', line], { cwd: root, env, detached: true })
  child.stdin.end(input)
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      output += chunk
    })
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  atEnd(t, async () => {
    if (child.exitCode === null) process.kill(-(child.pid as number), 'SIGTERM')
    await ended
  })
  return {
    ended,
    output: () => output,
    async find(pattern: RegExp): Promise<string> {
      await until(`${line} prints ${pattern}`, () => pattern.test(output) || child.exitCode !== null, 90_000)
      const [, found] = pattern.exec(output) ?? []
      assert.ok(found !== undefined, output)
      return found
    },
  }
}

test('the README leads to a first request through a tunnel in five commands', async (t) => {
  const [start = '', share = ''] = blocks.map(([, block = '']) => block)
  assert.equal(start.trim(), 'npm ci && npm start')
  const lines = share.trim().split('\n')
  assert.ok(lines.length + 2 <= 5, 'npm ci && npm start, these lines, and the request')

  const { first: port, last: edgePort } = await freePorts(2)
  const app = await startLocal(t)
  const home = createFolder(t)
  const env = {
    HOME: home,
    PATH: `${join(home, '.local/bin')}:${dirname(process.execPath)}:${process.env.PATH ?? ''}`,
    ADIT_LOG_LEVEL: 'warn',
  }
  const server = runLine(t, 'npm start', { ...env, ADIT_PORT: `${port}`, ADIT_EDGE_PORT: `${edgePort}` })
  const key = await server.find(/API key +(adit_\w+)/)
  await server.find(/(Edge +http)/)

  const [install = '', login = '', tunnel = ''] = lines.map((line) =>
    line.replaceAll('8080', `${port}`).replace('tunnel 3000', `tunnel ${app.port}`),
  )
  const installed = runLine(t, install, env)
  assert.equal(await installed.ended, 0, installed.output())
  const signedIn = runLine(t, login, env, `${key}\n`)
  assert.equal(await signedIn.ended, 0, signedIn.output())
  const printed = (lines[2] as string).replace(/.*prints /, '').replace('8081', `${edgePort}`)
  const url = await runLine(t, tunnel, env).find(/^(http\S+)$/m)
  assert.equal(url, printed)
  const response = await fetchHost({ port: edgePort }, new URL(url).host)
  assert.equal(response.status, 200)
})
