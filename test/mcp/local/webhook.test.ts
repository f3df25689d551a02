// An agent opens tunnels to allowed ports, and works with the requests that arrive.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fetchHost, openTunnel } from '../../support/edges/tunnels.ts'
import { freePort } from '../../support/processes/ports.ts'
import { run } from '../../support/processes/process.ts'
import { until } from '../../support/until.ts'
import { callMessage, connectAgent, exchangeLines, hello, listToolNames, spawnMcp } from '../agent.ts'
import { createSetting, openAgentTunnel, readResult, startEcho, startShared } from './support.ts'

const LOCAL_TOOLS = [
  'open_local_tunnel',
  'close_local_tunnel',
  'list_requests',
  'get_request',
  'wait_for_request',
  'replay_request',
]
const shared = await startShared()

test('an agent opens a tunnel, waits for a webhook, reads and replays it, and closes the tunnel', async (t) => {
  const { agent, port, received, opened, visit, env } = await openAgentTunnel(t, shared, 'hooks')
  const { url, since } = readResult(opened.text)
  assert.match(url, /^http:\/\/hooks\.acme\.localhost/)
  const again = await agent.call('open_local_tunnel', { port })
  assert.equal(readResult(again.text).url, url, 'the same tunnel')
  assert.match((await agent.call('open_local_tunnel', { port, name: 'x' })).text, /^conflict: .*"hooks"/)
  const rewriting = await agent.call('open_local_tunnel', { port, rewrite_host: true })
  assert.match(rewriting.text, /^conflict: .*without "rewrite_host"/)

  const waiting = agent.call('wait_for_request', {
    path: '/hook',
    method: 'post',
    since,
    timeout_seconds: 60,
  })
  await visit({ path: '/other' })
  await visit({ method: 'POST', path: '/hook?n=1', body: Buffer.from('{"event":"paid"}') })
  const { untrusted: waited } = readResult((await waiting).text)
  assert.deepEqual([waited.path, waited.status, waited.state], ['/hook?n=1', 200, 'complete'])
  assert.match(waited.request.body.view.text, /"event":\s*"paid"/)

  const list = readResult((await agent.call('list_requests', { tunnel: 'hooks' })).text).untrusted
  assert.deepEqual(
    list.requests.map(({ path }: { path: string }) => path),
    ['/hook?n=1', '/other'],
  )
  assert.equal(list.tunnels[0].target, `http://localhost:${port}`)
  const read = readResult((await agent.call('get_request', { id: waited.id })).text).untrusted
  assert.deepEqual([read.id, read.target], [waited.id, `http://localhost:${port}`])

  const replayed = await agent.call('replay_request', { id: waited.id })
  assert.equal(readResult(replayed.text).untrusted.replayOf, waited.id)
  const edit = { path: '/v2', body: 'changed', headers: ['X-Extra: 1'], remove_headers: ['accept'] }
  const edited = readResult((await agent.call('replay_request', { id: waited.id, ...edit })).text)
  assert.deepEqual([edited.untrusted.edited, edited.untrusted.status], [true, 200])
  assert.deepEqual(
    received.map(({ url, body }) => [url, body]),
    [
      ['/other', ''],
      ['/hook?n=1', '{"event":"paid"}'],
      ['/hook?n=1', '{"event":"paid"}'],
      ['/v2', 'changed'],
    ],
  )
  assert.equal(received.at(-1)?.headers['x-extra'], '1')

  assert.match((await run(t, ['requests', 'list'], env)).stdout, /hooks .*\/v2/, 'the user sees them, too')
  assert.match((await run(t, ['requests', 'link'], env)).stderr, /No tunnel of yours has a page/)
  assert.equal((await agent.call('close_local_tunnel', { port })).failed, false)
  assert.equal((await visit({})).status, 404)
  assert.match((await agent.call('close_local_tunnel', { port })).text, /^not_found: /)
  assert.match((await agent.call('get_request', { id: waited.id })).text, /^not_found: /)
  assert.match((await agent.call('list_requests')).text, /^Requests listed: 0\. No tunnel .* open one\./)
})

test('a port that was not allowed is rejected, and without --allow-port there are no such tools', async (t) => {
  const [allowed, other] = [await startEcho(t), await startEcho(t)]
  const { access } = createSetting(t, shared)
  const agent = await connectAgent(t, 'stdio', access(['--allow-port', String(allowed.port)]))
  const rejected = await agent.call('open_local_tunnel', { port: other.port, name: 'rejected' })
  assert.equal(rejected.failed, true)
  assert.match(rejected.text, new RegExp(`^port_not_allowed: .*--allow-port ${other.port}`))
  assert.equal((await fetchHost(shared.edge, 'rejected.acme.localhost')).status, 404)
  for (const port of ['3000', 3000.5, -1])
    assert.equal((await agent.call('open_local_tunnel', { port })).failed, true)
  const wrongName = await agent.call('open_local_tunnel', { port: allowed.port, name: 'No Name' })
  assert.match(wrongName.text, /^invalid_request: Invalid "name" "No Name"/)

  const without = await connectAgent(t, 'stdio', access([]))
  const names = await listToolNames(without)
  assert.deepEqual(
    names.filter((name) => LOCAL_TOOLS.includes(name)),
    [],
  )
  await assert.rejects(without.call('open_local_tunnel', { port: allowed.port }), /Unknown tool/)
  assert.match(without.client.getInstructions() ?? '', /adit mcp --allow-port <port>/)
  const overHttp = await connectAgent(t, 'http', { url: shared.plane.url, apiKey: shared.key })
  await assert.rejects(overHttp.call('list_requests'), /Unknown tool/)
})

test('a tunnel that cannot be opened is an error with its reason, and leaves nothing behind', async (t) => {
  const echo = await startEcho(t)
  const { access, env } = createSetting(t, shared)
  const { flags, ...others } = access(['--allow-port', String(echo.port)])
  const unreachable = `http://127.0.0.1:${await freePort()}`
  const agent = await connectAgent(t, 'stdio', {
    ...others,
    flags,
    env: { ...env, ADIT_EDGE_URL: unreachable },
  })
  for (let attempt = 0; attempt < 2; attempt++) {
    const failed = await agent.call('open_local_tunnel', { port: echo.port })
    assert.equal(failed.failed, true)
    assert.match(failed.text, new RegExp(`^unreachable: The edge at ${unreachable} cannot be reached`))
  }
  const rejecting = await connectAgent(t, 'stdio', { ...others, flags, apiKey: 'adit_wrong' })
  const { text } = await rejecting.call('open_local_tunnel', { port: echo.port })
  assert.match(text, /^unauthorized: /)
  await until('no socket is left', () => readdirSync(join(env.XDG_RUNTIME_DIR, 'adit')).length === 0)
})

test('wrong flags are rejected with advice', async (t) => {
  const env = { ADIT_URL: shared.plane.url, ADIT_API_KEY: shared.key }
  const failures: [string[], RegExp][] = [
    [['--allow-port', '0'], /Invalid --allow-port "0" \(expected 1–65535\)/],
    [['--allow-port', 'localhost:1'], /Invalid --allow-port/],
    [Array.from({ length: 11 }, (_, i) => `--allow-port=${i + 1}`), /at most 10/],
    [['--show-secrets'], /no effect without --allow-port/],
    [['--allow-port', '1', '--mask-header', 'a b'], /Invalid --mask-header "a b"/],
  ]
  for (const [flags, message] of failures) {
    const { code, stderr } = await run(t, ['mcp', ...flags], env)
    assert.equal(code, 2)
    assert.match(stderr, message)
  }
})

test('requests of `adit tunnel --inspect` are visible if their port is allowed, and no others', async (t) => {
  const [allowed, other] = [await startEcho(t), await startEcho(t)]
  const { access, env } = createSetting(t, shared)
  for (const [name, { port }] of [
    ['mine', allowed],
    ['private', other],
  ] as const) {
    const options = { edge: shared.edge, key: shared.key, port, name, flags: ['--inspect'], env }
    const { host } = await openTunnel(t, options)
    await fetchHost(shared.edge, host, { path: `/${name}` })
  }
  const recorded = async () => JSON.parse((await run(t, ['requests', 'list', '--json'], env)).stdout)
  await until('both are recorded', async () => (await recorded()).length === 2)
  const secret = (await recorded()).find(({ tunnel }: { tunnel: string }) => tunnel === 'private')

  const agent = await connectAgent(t, 'stdio', access(['--allow-port', String(allowed.port)]))
  for (const args of [{}, { tunnel: 'private' }, { search: 'private' }]) {
    const { text } = await agent.call('list_requests', args)
    assert.doesNotMatch(text, /private/)
    assert.equal(readResult(text).untrusted.requests.length, 'tunnel' in args || 'search' in args ? 0 : 1)
  }
  assert.match((await agent.call('get_request', { id: secret.id })).text, /^not_found: /)
  assert.match((await agent.call('replay_request', { id: secret.id })).text, /^not_found: /)
  const after = await agent.call('wait_for_request', {
    tunnel: 'private',
    since: '2000-01-01',
    timeout_seconds: 1,
  })
  assert.match(after.text, /^No request matched within 1 s/)
  assert.equal(other.received.length, 1)
})

test('a wait is bounded, ends when it is canceled, and finds the request after another one', async (t) => {
  const { agent, visit } = await openAgentTunnel(t, shared, 'waits')
  for (const timeout of [0, 61])
    assert.match(
      (await agent.call('wait_for_request', { timeout_seconds: timeout })).text,
      /^invalid_request: Invalid "timeout_seconds" \(expected 1 to 60\)/,
    )
  const controller = new AbortController()
  const wait = () =>
    agent.client.callTool(
      { name: 'wait_for_request', arguments: { timeout_seconds: 60 } },
      { signal: controller.signal },
    )
  const waits = Array.from({ length: 4 }, () => assert.rejects(wait()))
  await until('four waits are in progress', async () => {
    const { text } = await agent.call('wait_for_request', { timeout_seconds: 1 })
    return text.startsWith('too_many: ')
  })
  controller.abort()
  await Promise.all(waits)
  for (const path of ['/first', '/second']) await visit({ path })
  let found = { id: '', path: '' }
  await until('the canceled waits have ended', async () => {
    const { text, failed } = await agent.call('wait_for_request', { since: '2000-01-01' })
    if (!failed) found = readResult(text).untrusted
    return !failed
  })
  assert.equal(found.path, '/first')
  const { text } = await agent.call('wait_for_request', { after: found.id })
  assert.equal(readResult(text).untrusted.path, '/second')
})

test('when standard input ends, waits end and tunnels are closed, then the process exits', async (t) => {
  const echo = await startEcho(t)
  const { access, env } = createSetting(t, shared)
  const child = spawnMcp(t, access(['--allow-port', String(echo.port)]))
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text
  })
  const send = (message: object) => child.stdin.write(`${JSON.stringify(message)}\n`)
  send(hello)
  send(callMessage(1, 'open_local_tunnel', { port: echo.port, name: 'ends' }))
  await until('the tunnel is open', () => output.includes('ends.acme.localhost'))
  send(callMessage(2, 'wait_for_request', { timeout_seconds: 60 }))
  send(callMessage(3, 'list_requests'))
  await until('the wait has begun', () => output.includes('Requests listed: 0'))
  child.stdin.end()
  assert.deepEqual(await once(child, 'close'), [0, null])
  assert.match(output, /"id":2.*canceled: |canceled: .*"id":2/)
  assert.equal((await fetchHost(shared.edge, 'ends.acme.localhost')).status, 404)
  assert.deepEqual(readdirSync(join(env.XDG_RUNTIME_DIR, 'adit')), [])
})

test('a call that is handled after the end of the input gets a response, and opens no tunnel', async (t) => {
  const echo = await startEcho(t)
  const { access, env } = createSetting(t, shared)
  const output = await exchangeLines(t, access(['--allow-port', String(echo.port)]), [
    hello,
    callMessage(1, 'open_local_tunnel', { port: echo.port, name: 'late' }),
  ])
  assert.match(output, /"id":1/)
  assert.match(output, /canceled: /)
  assert.equal((await fetchHost(shared.edge, 'late.acme.localhost')).status, 404)
  const sockets = join(env.XDG_RUNTIME_DIR, 'adit')
  assert.deepEqual(readdirSync(sockets), [])
})

test('a signal closes the tunnels as well', async (t) => {
  const { agent, env, host } = await openAgentTunnel(t, shared, 'signal')
  const { pid } = agent.client.transport as unknown as { pid: number }
  process.kill(pid, 'SIGTERM')
  const folder = join(env.XDG_RUNTIME_DIR, 'adit')
  await until('its socket is removed', () => readdirSync(folder).length === 0)
  await until('the tunnel is closed', async () => (await fetchHost(shared.edge, host)).status === 404)
})
