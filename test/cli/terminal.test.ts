// Commands on a terminal: prompts, warnings, relative times, table widths and colors.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { serve } from '../support/api/server.ts'
import type { Test } from '../support/cleanup.ts'
import { createFolder } from '../support/databases/create.ts'
import { simulateEdge } from '../support/edges/connected-edge.ts'
import { tunnelOf } from '../support/edges/open-tunnels.ts'
import { createOperator } from '../support/processes/commands.ts'
import { freePort } from '../support/processes/ports.ts'
import { run } from '../support/processes/process.ts'
import { atTerminal, hasTerminal, NO_TERMINAL } from '../support/processes/terminal.ts'

const terminalTest = (title: string, body: (t: Test) => Promise<void>) =>
  test(title, { skip: hasTerminal ? false : NO_TERMINAL }, body)

const ESCAPE = '\u001b['

function createHome(t: Test) {
  const folder = createFolder(t)
  const profiles = () => JSON.parse(readFileSync(join(folder, 'adit/profiles.json'), 'utf8'))
  return { home: { XDG_CONFIG_HOME: folder, HOME: folder }, profiles }
}

/** For tests that leave its key alone. */
const server = await serve({ after }, { engine: 'sqlite' })

terminalTest('login asks again after a wrong URL or key, and does not show the key', async (t) => {
  const { home, profiles } = createHome(t)
  const login = atTerminal(t, ['login'], home)
  const prompt = 'Server [http://127.0.0.1:8080]: '
  await login.reply(prompt, 'ftp://nowhere\r')
  await login.reply(prompt, `127.0.0.1:${await freePort()}\r`)
  // host:port; on loopback without TLS.
  await login.reply(prompt, `${new URL(server.url).host}\r`)
  await login.reply('API key (not shown): ', 'wrong\r')
  await login.reply('API key (not shown): ', `${server.key.token}\r`)
  assert.equal(await login.ended, 0)
  const output = login.output()
  assert.match(output, /Invalid URL of the server/)
  assert.match(output, /Check the URL, and that the server is running/)
  assert.match(output, /rejected the API key: Malformed .* An API key is "adit_" and 49 letters and digits/)
  assert.match(output, /Saved as profile "default", which is now the current profile\./)
  assert.ok(!output.includes(server.key.token), 'the key was shown')
  assert.equal(profiles().profiles.default.url, server.url)
})

terminalTest(
  'login with --profile prints that the current profile changed, and how to switch back',
  async (t) => {
    const { home, profiles } = createHome(t)
    for (const profile of ['one', 'two']) {
      const login = atTerminal(t, ['login', '--url', server.url, '--profile', profile], home)
      await login.reply('API key (not shown): ', `${server.key.token}\r`)
      assert.equal(await login.ended, 0)
      assert.match(login.output(), new RegExp(`Saved as profile "${profile}", which is now the current`))
      assert.equal(
        login
          .output()
          .includes('The current profile was "one". To switch back, run `adit profiles use one`.'),
        profile === 'two',
      )
    }
    assert.equal(profiles().current, 'two')
  },
)

terminalTest('revoking a key asks first; anything but yes cancels', async (t) => {
  const env = { ...createHome(t).home, ADIT_URL: server.url, ADIT_API_KEY: server.key.token }
  const { id } = (await server.post('/tokens', { label: 'old laptop' })).json
  const question = `Revoke API key "old laptop" (${id}), never used? This cannot be undone. [y/N] `
  for (const [typed, message] of [
    ['\r', /Canceled\. Nothing was revoked\./],
    ['maybe\r', /Canceled\. Nothing was revoked\./],
    ['\u0003', /Canceled\./],
  ] as const) {
    const command = atTerminal(t, ['keys', 'revoke', id], env)
    await command.reply(question, typed)
    assert.equal(await command.ended, 1)
    assert.match(command.output(), message)
  }
  const command = atTerminal(t, ['keys', 'revoke', id], env)
  await command.reply(question, 'y\r')
  assert.equal(await command.ended, 0)
  assert.match(command.output(), new RegExp(`Revoked ${id}`))
  assert.ok(!command.output().includes('Warning'), 'it warned about another key')
})

terminalTest('closing a tunnel asks first; anything but yes cancels', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const env = { ...createHome(t).home, ADIT_URL: server.url, ADIT_API_KEY: server.key.token }
  const tunnel = tunnelOf(server)
  await simulateEdge(t, server, 'fra-1', [tunnel])
  const question =
    `Close ${tunnel.url}, opened with the API key "first" by 192.0.2.7? ` +
    'Requests in progress are aborted. [y/N] '
  const canceled = atTerminal(t, ['tunnels', 'close', tunnel.id], env)
  await canceled.reply(question, '\r')
  assert.equal(await canceled.ended, 1)
  assert.match(canceled.output(), /Canceled\. Nothing was closed\./)
  const closed = atTerminal(t, ['tunnels', 'close', tunnel.id], env)
  await closed.reply(question, 'y\r')
  assert.equal(await closed.ended, 0)
  assert.match(closed.output(), new RegExp(`Closed ${tunnel.id}`))
})

terminalTest('revoking the key that the command itself uses warns first', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const env = { ...createHome(t).home, ADIT_URL: server.url, ADIT_API_KEY: server.key.token }
  const warning = /Warning:\S* this command itself uses that key \(ADIT_API_KEY\)/
  const only = atTerminal(t, ['keys', 'revoke', server.key.id], env)
  await only.reply('[y/N] ', '\r')
  await only.ended
  assert.match(only.output(), warning)
  await server.post('/tokens', { label: 'another' })
  const one = atTerminal(t, ['keys', 'revoke', server.key.id], env)
  await one.reply('[y/N] ', 'y\r')
  assert.equal(await one.ended, 0)
  assert.match(one.output(), warning)
})

terminalTest('the operator is warned before the last key of a workspace is revoked', async (t) => {
  const { env, adit, json } = await createOperator(t)
  await adit('workspace', 'create', 'acme')
  const { id } = await json('key', 'create', '--workspace', 'acme')
  for (const [typed, code] of [
    ['n\r', 1],
    ['yes\r', 0],
  ] as const) {
    const command = atTerminal(t, ['admin', 'key', 'revoke', id], env)
    await command.reply('Continue? [y/N] ', typed)
    assert.equal(await command.ended, code)
    assert.ok(command.output().includes(`${id} is the last active API key of workspace "acme".`))
  }
})

terminalTest('tables have relative times and fit the terminal; identifiers stay whole', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const env = { ...createHome(t).home, ADIT_URL: server.url, ADIT_API_KEY: server.key.token, NO_COLOR: '1' }
  const label = 'a label that is much longer than any terminal of eighty columns could ever show'
  const { id } = (await server.post('/tokens', { label })).json
  await server.call('DELETE', `/tokens/${(await server.post('/tokens', { label: 'old' })).json.id}`)
  const list = async (columns: number) => {
    const command = atTerminal(t, ['keys', 'list'], env, columns)
    assert.equal(await command.ended, 0)
    return command.output().trimEnd().split('\n')
  }
  const narrow = await list(80)
  assert.equal(narrow.length, 4)
  for (const line of narrow) assert.ok([...line].length <= 80, line)
  const row = narrow.find((line) => line.startsWith(id)) as string
  assert.match(row, /^tok_\w{26} {2}a label… {2,}just now +never +active$/)
  const wide = await list(200)
  assert.ok(wide.some((line) => line.includes(label)))
  const piped = await run(t, ['keys', 'list'], env)
  assert.ok(piped.stdout.includes(label))
  assert.match(piped.stdout, / {2}\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z {2}/)
  const { createdAt } = JSON.parse((await run(t, ['keys', 'list', '--json'], env)).stdout)[0]
  assert.match(createdAt, /^\d{4}-\d\d-\d\dT/)
})

terminalTest('color is used on a terminal, unless NO_COLOR or TERM=dumb is set', async (t) => {
  const env = { ...createHome(t).home, ADIT_URL: server.url, ADIT_API_KEY: server.key.token }
  for (const [more, hasColor] of [
    [{}, true],
    [{ NO_COLOR: '1' }, false],
    [{ TERM: 'dumb' }, false],
  ] as const)
    for (const args of [['keys', 'list'], ['--help'], ['nope']]) {
      const command = atTerminal(t, args, { ...env, ...more })
      await command.ended
      assert.equal(command.output().includes(ESCAPE), hasColor, `${args} ${JSON.stringify(more)}`)
    }
  for (const args of [['keys', 'list'], ['--help'], ['nope']]) {
    const { stdout, stderr } = await run(t, args, env)
    assert.ok(!`${stdout}${stderr}`.includes(ESCAPE), `${args} in a pipe`)
  }
})
