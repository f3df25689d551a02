// `adit --help` and the help of groups and commands.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { groups } from '../../src/cli/command.ts'
import { commands } from '../../src/cli/commands.ts'
import { version } from '../../src/server/config/server.ts'
import { root, run } from '../support/processes/process.ts'

const COLUMNS = 80

type Options = Record<string, { hidden?: true }>

const assertFits = (text: string) => {
  for (const line of text.split('\n')) assert.ok([...line].length <= COLUMNS, line)
}

test('adit --help lists every command in its group, each on one line of at most 80 columns', async (t) => {
  for (const args of [[], ['--help'], ['-h'], ['help']]) {
    const { code, stdout, stderr } = await run(t, args, {})
    assert.deepEqual([code, stderr], [0, ''])
    assertFits(stdout)
    const sections = new Map(
      stdout.split('\n\n').map((section) => {
        const [head = '', ...lines] = section.trimEnd().split('\n')
        return [head, lines]
      }),
    )
    for (const group of groups)
      assert.deepEqual(
        sections.get(`${group}:`)?.map((line) => line.trim().split(/ {2,}/)),
        commands.filter((command) => command.group === group).map(({ name, summary }) => [name, summary]),
      )
  }
})

test('the help of a command has its arguments, flags and variables, in 80 columns', async (t) => {
  for (const { name, options = {}, arguments: names = [], environment = {} } of commands) {
    const { code, stdout } = await run(t, [...name.split(' '), '--help'], {})
    assert.equal(code, 0)
    assert.ok(stdout.startsWith(`Usage: adit ${name}`))
    for (const [option, { hidden = false }] of Object.entries({ ...options, json: {}, help: {} } as Options))
      assert.equal(stdout.includes(`--${option}`), !hidden, `${name} --${option}`)
    for (const argument of names) assert.ok(stdout.includes(`<${argument}>`))
    for (const variable of Object.keys(environment)) assert.ok(stdout.includes(variable), variable)
    assertFits(stdout)
  }
})

test('the help of adit tunnel tcp has no flags that are for HTTP only', async (t) => {
  const { stdout } = await run(t, ['tunnel', 'tcp', '--help'], {})
  assert.doesNotMatch(stdout, /basic-auth|--serve/)
  assert.match(stdout, /--allow-ip/)
})

test('the help of a group lists its commands with their arguments', async (t) => {
  for (const args of [
    ['admin', 'key', '--help'],
    ['help', 'admin', 'key'],
  ]) {
    const { code, stdout } = await run(t, args, {})
    assert.equal(code, 0)
    assertFits(stdout)
    assert.match(stdout, /^Usage: adit admin key <command>/)
    assert.match(stdout, /^ {2}admin key create --workspace <slug> +create an API key/m)
    assert.match(stdout, /^ {2}admin key revoke <id> +revoke an API key/m)
    assert.ok(!stdout.includes('admin user'))
  }
  assert.match((await run(t, ['help', 'nope'], {})).stderr, /Unknown command "nope"/)
})

test('the client alone says what it does', () => {
  const script = `import('${join(root, 'src/cli-main.ts')}').then(({ main }) => main(['--help']))`
  const { stdout } = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8' })
  assert.match(
    stdout,
    /^Adit: expose local servers at public URLs, and manage API keys and usage\n\nUsage: adit /,
  )
  assert.doesNotMatch(stdout, /control plane|adit admin/)
})

test('--version and -v print the version', async (t) => {
  for (const flag of ['--version', '-v']) assert.equal((await run(t, [flag], {})).stdout, `${version}\n`)
})
