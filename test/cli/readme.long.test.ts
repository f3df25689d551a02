// The commands of the README, run as written, with other ports and an empty home.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { openBrowser, PASSWORD } from '../support/accounts/users.ts'
import { test as browserTest, openBrowser as openChromium } from '../support/browser.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import { createFolder } from '../support/databases/create.ts'
import { fetchHost, startLocal } from '../support/edges/tunnels.ts'
import { startApp } from '../support/frameworks/apps.ts'
import { assertHotReload } from '../support/frameworks/hot-reload.ts'
import { collectText } from '../support/network/collect.ts'
import { freePorts } from '../support/processes/ports.ts'
import { root } from '../support/processes/process.ts'
import { replaceShown } from '../support/processes/program.ts'
import { hasTerminal, NO_TERMINAL, runAtTerminal } from '../support/processes/terminal.ts'
import { until } from '../support/until.ts'

const readme = readFileSync(join(root, 'README.md'), 'utf8')
const blocks = [...readme.matchAll(/^```sh\n(.*?)^```/gms)].map(([, block = '']) => block.trim().split('\n'))
const [startLines = [], shareLines = []] = blocks

/** A line of a shell, in a process group of its own: npm starts further processes. */
function runLine(t: Test, line: string, env: Record<string, string>, input = '', cwd = root) {
  const child = spawn('sh', ['-c', line], { cwd, env, detached: true })
  child.stdin.end(input)
  const output = collectText(child.stdout, child.stderr)
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  atEnd(t, async () => {
    if (child.exitCode === null) process.kill(-(child.pid as number), 'SIGTERM')
    await ended
  })
  return {
    ended,
    output,
    async find(pattern: RegExp): Promise<string> {
      await until(
        `${line} prints ${pattern}`,
        () => pattern.test(output()) || child.exitCode !== null,
        90_000,
      )
      const [, found] = pattern.exec(output()) ?? []
      assert.ok(found !== undefined, output())
      return found
    },
  }
}

test('the README leads to a first request through a tunnel in five commands', async (t) => {
  assert.deepEqual(startLines, ['npm ci && npm start'])
  assert.ok(shareLines.length + 2 <= 5, 'npm ci && npm start, these lines, and the request')

  const { first: port, last: edgePort } = await freePorts(2)
  const app = await startLocal(t)
  const home = createFolder(t)
  const env = {
    HOME: home,
    PATH: `${dirname(process.execPath)}:${process.env.PATH ?? ''}`,
    ADIT_LOG_LEVEL: 'warn',
  }
  const server = runLine(t, 'npm start', { ...env, ADIT_PORT: `${port}`, ADIT_EDGE_PORT: `${edgePort}` })
  const key = await server.find(/API key +(adit_\w+)/)
  await server.find(/(Edge +http)/)

  const [install = '', login = '', tunnel = ''] = shareLines.map((line) =>
    line.replaceAll('8080', `${port}`).replace('tunnel 3000', `tunnel ${app.port}`),
  )
  const installed = runLine(t, install, env)
  assert.equal(await installed.ended, 0, installed.output())
  // Each line is run by a shell of its own.
  const [exportPath = ''] = /export PATH=\S+/.exec(install) ?? []
  const signedIn = runLine(t, `${exportPath}; ${login}`, env, `${key}\n`)
  assert.equal(await signedIn.ended, 0, signedIn.output())
  const printed = (shareLines[2] as string).replace(/.*prints /, '').replace('8081', `${edgePort}`)
  const url = await runLine(t, `${exportPath}; ${tunnel}`, env).find(/^(http\S+)$/m)
  assert.equal(url, printed)
  const response = await fetchHost({ port: edgePort }, new URL(url).host)
  assert.equal(response.status, 200)
})

browserTest(
  'a member on another machine shares a Vite app on a domain of its own, with hot reload',
  {
    skip: hasTerminal ? false : NO_TERMINAL,
  },
  async (t) => {
    const [startOnDomain = ''] = /ADIT_TUNNEL_DOMAIN=\S+ npm start/.exec(readme) ?? []
    const domain = 'tunnels.example.test'
    const { first: port, last: edgePort } = await freePorts(2)
    const server = runLine(t, replaceShown(startOnDomain, { 'tunnels.example.com': domain }), {
      HOME: createFolder(t),
      PATH: process.env.PATH ?? '',
      ADIT_LOG_LEVEL: 'warn',
      ADIT_PORT: `${port}`,
      ADIT_EDGE_PORT: `${edgePort}`,
    })
    const link = await server.find(/\/link#([\w-]+)/)
    const url = `http://127.0.0.1:${port}`
    const [owner, mia] = [openBrowser(url), openBrowser(url)]
    const join = async (user: typeof owner, name: string, link: string) => {
      const account = { link, name, password: PASSWORD, email: `${name}@example.com` }
      const { status, text } = await user.post('/links/redeem', account)
      assert.equal(status, 200, text)
    }
    await join(owner, 'ann', link)
    const invitation = { email: 'mia@example.com', role: 'member' }
    const { json } = await owner.post('/workspaces/default/invitations', invitation)
    await join(mia, 'mia', new URL(json.link).hash.slice(1))

    // Nothing of the clone: an empty home, which is also the working directory, and Node.
    const home = createFolder(t)
    const path = [`${home}/.local/bin`, dirname(process.execPath), '/usr/bin', '/bin'].join(':')
    const env = { HOME: home, PATH: path }
    const [install = '', login = '', tunnel = ''] = shareLines.map((line) => line.replace(/ +#.*/, ''))
    const installed = runLine(t, replaceShown(install, { 8080: `${port}` }), env, '', home)
    assert.equal(await installed.ended, 0, installed.output())
    const words = replaceShown(login, { 8080: `${port}` }).split(' ')
    const terminal = runAtTerminal(t, words, { env, cwd: home })
    await terminal.reply('Press Enter to sign in with your browser', '\r')
    await until('the code', () => /[?]code=([A-Z-]+)/.test(terminal.output()))
    const [, code] = /[?]code=([A-Z-]+)/.exec(terminal.output()) ?? []
    assert.equal((await mia.post('/workspaces/default/devices', { code })).status, 200)
    assert.equal(await terminal.ended, 0, terminal.output())

    const command = (port: string) => ['node', '../node_modules/vite/bin/vite.js', '--port', port]
    const app = await startApp(t, 'vite', { command })
    const share = `${replaceShown(tunnel, { 3000: `${app.port}` })} --host-header rewrite`
    const printed = await runLine(t, share, env, '', home).find(/^(http\S+)$/m)
    assert.equal(printed, `http://my-app.default.${domain}:${edgePort}`)
    const context = await (await openChromium(t)).newContext()
    await assertHotReload(await context.newPage(), `${printed}/`, app, 'main.js')
  },
)
