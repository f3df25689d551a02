// The address of the client: one canonical form for limits, sessions and the log.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ipPrefix, normalizeAddress } from '../../../src/lib/net/ip-address.ts'
import { callMessage, postMessage } from '../../mcp/agent.ts'
import { addMember, openBrowser, PASSWORD } from '../../support/accounts/users.ts'
import { caller, serve } from '../../support/api/server.ts'
import { createDatabase } from '../../support/databases/create.ts'
import { pluck } from '../../support/pluck.ts'
import { startServing } from '../../support/processes/process.ts'

test('an address is normalized: no port, brackets, zone or mapping', () => {
  for (const [text, address] of [
    ['192.0.2.7', '192.0.2.7'],
    [' 192.0.2.7:61234', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['::FFFF:c000:0207', '192.0.2.7'],
    ['[::ffff:192.0.2.7]:443', '192.0.2.7'],
    ['2001:0DB8:0:0::1', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['[2001:db8::1]:61234', '2001:db8::1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['[fe80::1%25eth0]:80', 'fe80::1'],
    ['::1', '::1'],
    ['', undefined],
    ['unknown', undefined],
    ['_hidden', undefined],
    ['192.0.2', undefined],
    ['192.0.2.256', undefined],
    ['192.0.2.7:', undefined],
    ['192.0.2.7:99:1', undefined],
    ['[2001:db8::1', undefined],
    ['example.com', undefined],
    ['"192.0.2.7"', undefined],
  ] as const)
    assert.equal(normalizeAddress(text), address, text)
})

test('IPv6 addresses are counted by network, IPv4 addresses one by one', () => {
  assert.equal(ipPrefix('192.0.2.7', 64), '192.0.2.7')
  assert.equal(ipPrefix('192.0.2.7', 48), '192.0.2.7')
  assert.equal(ipPrefix('2001:db8:1:2:3:4:5:6', 64), '2001:db8:1:2::/64')
  assert.equal(ipPrefix('2001:db8:1:2:3:4:5:6', 48), '2001:db8:1::/48')
  assert.equal(ipPrefix('2001:db8:1:2:3:4:5:6', 32), '2001:db8::/32')
  assert.equal(ipPrefix('2001:db8:1::9', 64), '2001:db8:1:0::/64')
  assert.equal(ipPrefix('::1', 64), '0:0:0:0::/64')
  assert.equal(ipPrefix('1::', 48), '1:0:0::/48')
})

const behindProxy = { ADIT_TRUSTED_PROXIES: '127.0.0.1, 10.0.0.0/8' }

test('a proxy that sends ports or invalid addresses does not split one client into many', async (t) => {
  const server = await serve(t, { engine: 'sqlite', env: behindProxy })
  const { email } = await addMember(server, 'Ann', 'owner')
  const attempt = (password: string, from: string) =>
    openBrowser(server.url).call('POST', '/sign-in', { email, password }, { 'x-forwarded-for': from })
  for (const from of [
    '192.0.2.1:1001',
    '192.0.2.1:1002',
    '::ffff:192.0.2.1',
    '192.0.2.1',
    '[::ffff:192.0.2.1]:7',
  ])
    assert.equal((await attempt('wrong', from)).status, 401, from)
  assert.equal((await attempt(PASSWORD, '192.0.2.1:1006')).status, 429)
  for (let round = 0; round < 5; round++)
    assert.equal((await attempt('wrong', `made-up-${round}`)).status, 401, 'another client')
  assert.equal((await attempt(PASSWORD, 'made-up-6')).status, 429, 'counted as the proxy itself')
  const bob = await addMember(server, 'Bob', 'owner')
  const fine = openBrowser(server.url)
  await fine.call(
    'POST',
    '/sign-in',
    { email: bob.email, password: PASSWORD },
    { 'x-forwarded-for': 'forged, 192.0.2.2:8080, 10.0.0.3:443' },
  )
  const { sessions } = (await fine.get('/account/sessions')).json
  assert.ok(sessions.some(({ address }: { address: string }) => address === '192.0.2.2'))
})

test('many networks of one /48 are limited together', async (t) => {
  const server = await serve(t, { engine: 'sqlite', env: behindProxy })
  const attempt = async (index: number, group: number) => {
    const from = { 'x-forwarded-for': `2001:db8:${group}:${index.toString(16)}::1` }
    return (await openBrowser(server.url).call('POST', '/sign-in/code', { code: '000000' }, from)).status
  }
  for (let index = 0; index < 80; index++) assert.equal(await attempt(index, 7), 401)
  assert.equal(await attempt(80, 7), 429, 'although each came from a different network')
  assert.equal(await attempt(1, 8), 401, 'the adjacent network is not limited')
})

test('the access log has the normalized form, for cache hits, misses and API requests of MCP tools', async (t) => {
  const running = await startServing(t, {
    ADIT_DATABASE_URL: await createDatabase(t, 'sqlite'),
    ADIT_ACCESS_LOG: 'all',
    ...behindProxy,
  })
  const call = caller(running.api, running.token as string)
  const cases = [
    ['192.0.2.9:4711', '192.0.2.9'],
    ['[2001:DB8::9]:4711', '2001:db8::9'],
    ['192.0.2.9, strange', '127.0.0.1'],
    ['192.0.2.9, 10.1.2.3:80', '192.0.2.9'],
    ['192.0.2.9, strange, 10.1.2.3', '10.1.2.3'],
  ] as const
  const paths = ['/workspace', '/workspace', '/workspace', '/workspace', '/usage?days=2', '/nowhere']
  for (const [index, [forwarded]] of cases.entries())
    for (const path of paths)
      await call('GET', path, { headers: { 'x-forwarded-for': forwarded, 'x-request-id': `case-${index}` } })
  const message = callMessage(1, 'get_workspace')
  const response = await postMessage({ url: running.url, apiKey: running.token as string }, message, {
    'x-forwarded-for': '192.0.2.9',
    'x-request-id': 'agent',
  })
  assert.equal(response.status, 200)
  const { stderr } = await running.stop()
  const lines = stderr
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  for (const [index, [forwarded, from]] of cases.entries()) {
    const found = lines.filter(({ requestId }) => requestId === `case-${index}`)
    assert.deepEqual(
      pluck(found, 'clientIp'),
      paths.map(() => from),
      forwarded,
    )
  }
  const ofAgent = lines.filter(({ requestId }) => requestId === 'agent')
  assert.deepEqual(pluck(ofAgent, 'route', 'clientIp'), [
    ['/api/v1/workspace', '192.0.2.9'],
    ['/mcp', '192.0.2.9'],
  ])
})
