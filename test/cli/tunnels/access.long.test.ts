// Access rules of `adit tunnel`: where the password comes from, and what is printed.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Test } from '../../support/cleanup.ts'
import { OPENED, startMinimalEdge } from '../../support/edges/minimal-edge.ts'
import { run, startProcess } from '../../support/processes/process.ts'
import { atTerminal, hasTerminal, NO_TERMINAL } from '../../support/processes/terminal.ts'

const CREDENTIAL = { user: 'ann', password: 'correct: horse' }

interface Given {
  env?: Record<string, string>
  input?: string
  access?: { basicAuth: boolean; allowIp: boolean }
}

/** What the edge is asked for, and what is printed when the tunnel is open. */
async function request(t: Test, args: string[], { env = {}, input = '', access }: Given = {}) {
  const applied = access ?? { basicAuth: true, allowIp: args.includes('--allow-ip') }
  const edge = await startMinimalEdge(t, {
    onConnect: ({ send }) => send({ event: 'open', ...OPENED, access: applied }),
  })
  const environment = { ADIT_API_KEY: 'adit_key', ADIT_EDGE_URL: edge.url, ...env }
  const tunnel = startProcess(t, ['tunnel', '3000', ...args], environment, input)
  const [line] = await tunnel.waitFor(/^Forwarding to .*$/m, 'stderr')
  const { request } = await edge.connection()
  const { stdout, stderr } = await tunnel.stop('SIGKILL')
  assert.ok(!`${stdout}${stderr}`.includes(CREDENTIAL.password), 'the password is not printed')
  return { access: request.access, line }
}

test('the password is read from standard input, the environment, or the flag', async (t) => {
  const given: [string, string[], Given][] = [
    ['standard input', ['--basic-auth', 'ann'], { input: 'correct: horse\n' }],
    ['environment', [], { env: { ADIT_TUNNEL_BASIC_AUTH: 'ann:correct: horse' } }],
    [
      'flag',
      ['--basic-auth', 'ann:correct: horse'],
      { env: { ADIT_TUNNEL_BASIC_AUTH: 'bob:other password' } },
    ],
  ]
  for (const [what, args, more] of given)
    assert.deepEqual((await request(t, args, more)).access, { basicAuth: CREDENTIAL, allowIp: [] }, what)
})

test('--allow-ip is repeatable, and the output says how access is limited', async (t) => {
  const flags = ['--allow-ip', '2001:DB8::/32', '--allow-ip=10.0.0.1']
  const limited = await request(t, flags, { access: { basicAuth: false, allowIp: true } })
  assert.deepEqual(limited.access, { allowIp: ['10.0.0.1/32', '2001:db8::/32'] })
  const forwarding = 'Forwarding to http://localhost:3000.'
  const stop = 'Press Ctrl-C to stop.'
  assert.equal(limited.line, `${forwarding} Access is limited: only some addresses are allowed. ${stop}`)
  // Rules of the name, which the client did not ask for.
  const { access, line } = await request(t, [], { access: { basicAuth: true, allowIp: true } })
  assert.equal(access, undefined)
  const both = 'requests need a user and password, only some addresses are allowed'
  assert.equal(line, `${forwarding} Access is limited: ${both}. ${stop}`)
})

test('a terminal asks for the password and does not show it', {
  skip: !hasTerminal && NO_TERMINAL,
}, async (t) => {
  const edge = await startMinimalEdge(t, {
    onConnect: ({ send }) => send({ event: 'open', ...OPENED, access: { basicAuth: true, allowIp: false } }),
  })
  const terminal = atTerminal(t, ['tunnel', '3000', '--basic-auth', 'ann'], {
    ADIT_API_KEY: 'adit_key',
    ADIT_EDGE_URL: edge.url,
  })
  await terminal.reply('Password for "ann" (not shown): ', `${CREDENTIAL.password}\n`)
  assert.deepEqual((await edge.connection()).request.access?.basicAuth, CREDENTIAL)
  await terminal.reply('Press Ctrl-C to stop.', '\u0003')
  await terminal.ended
  assert.ok(!terminal.output().includes(CREDENTIAL.password))
})

test('invalid rules are rejected before anything is sent', async (t) => {
  const env = { ADIT_API_KEY: 'adit_key', ADIT_EDGE_URL: 'http://127.0.0.1:9' }
  const cases: [args: string[], message: RegExp, variables?: Record<string, string>][] = [
    [
      ['tunnel', 'tcp', '5432', '--basic-auth', 'ann'],
      /--basic-auth is for HTTP tunnels only\..* with --allow-ip\./,
    ],
    [
      ['tunnel', 'tcp', '5432'],
      /ADIT_TUNNEL_BASIC_AUTH is for HTTP tunnels only\. .*unset the variable/,
      { ADIT_TUNNEL_BASIC_AUTH: 'ann:secret-password' },
    ],
    [
      ['tunnel', '3000'],
      /Invalid ADIT_TUNNEL_BASIC_AUTH \(expected user:password\)/,
      { ADIT_TUNNEL_BASIC_AUTH: 'secret-password' },
    ],
    [['tunnel', '3000', '--basic-auth', 'ann'], /No password on standard input/],
    [
      ['tunnel', '3000', '--basic-auth', 'ann:short'],
      /Invalid password for basic authentication \(expected 8 to 128 characters\)/,
    ],
    [['tunnel', '3000', '--basic-auth', ':secret-password'], /Invalid user for basic authentication/],
    [
      ['tunnel', '3000', '--allow-ip', '10.0.0.0/33'],
      /Invalid address or network "10\.0\.0\.0\/33" \(expected CIDR notation/,
    ],
    [['tunnel', '3000', ...Array(51).fill('--allow-ip=10.0.0.1')], /At most 50 addresses and networks/],
  ]
  for (const [args, message, variables] of cases) {
    const { code, stderr } = await run(t, args, { ...env, ...variables })
    assert.equal(code, 2, stderr)
    assert.match(stderr, message)
    assert.doesNotMatch(stderr, /secret-password|short/)
  }
})
