// Access rules of tunnels, against real sockets: nothing that a client sends gets around them.
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, test } from 'node:test'
import { openRawTunnel, startStandaloneEdge, upgradeRequest } from '../../support/edges/standalone-edge.ts'
import { fetchHost, openSocket, openTunnel } from '../../support/edges/tunnels.ts'
import { sendRaw } from '../../support/network/raw.ts'
import { freePorts } from '../../support/processes/ports.ts'
import { until } from '../../support/until.ts'

const basic = (credential: string) => `Basic ${Buffer.from(credential).toString('base64')}`
const RIGHT = basic('ann:correct horse')
const ADIT_TUNNEL_BASIC_AUTH = 'ann:correct horse'

const { edge, keys, local } = await startStandaloneEdge({ after }, ['acme'])
const [key = ''] = keys
const untrusting = await startStandaloneEdge({ after }, ['acme'], {
  ADIT_EDGE_TRUSTED_PROXIES: '192.0.2.1',
  ADIT_EDGE_TCP_PORTS: (await freePorts(10)).range,
})

const { host } = await openTunnel(
  { after },
  { edge, key, port: local.port, name: 'private', env: { ADIT_TUNNEL_BASIC_AUTH } },
)
const withPassword = { headers: { authorization: RIGHT } }

/** The statuses of the responses to these bytes, in order. */
async function readStatuses(bytes: string): Promise<number[]> {
  const { head, body } = await sendRaw(edge.url, bytes, 2_000)
  return [...`${head}\r\n\r\n${body}`.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
}

const request = (
  lines: string[],
  { method = 'GET', target = '/', version = '1.1', to = host, body = '' } = {},
) => [`${method} ${target} HTTP/${version}`, `Host: ${to}`, ...lines, '', body].join('\r\n')
const CLOSE = 'Connection: close'

test('no method, target, host, version or upgrade gets around a password', async () => {
  const before = local.requests.length
  const rejected: [what: string, bytes: string, statuses: number[]][] = [
    ...['GET', 'HEAD', 'OPTIONS', 'DELETE', 'TRACE', 'PROPFIND', 'PURGE'].map(
      (method) => [method, request([CLOSE], { method }), [401]] as [string, string, number[]],
    ),
    ['POST', request([CLOSE, 'Content-Length: 2'], { method: 'POST', body: 'hi' }), [401]],
    [
      'chunked',
      request([CLOSE, 'Transfer-Encoding: chunked'], { method: 'PUT', body: '2\r\nhi\r\n0\r\n\r\n' }),
      [401],
    ],
    ['OPTIONS *', request([CLOSE], { method: 'OPTIONS', target: '*' }), [401]],
    ['CONNECT', request([CLOSE], { method: 'CONNECT', target: `${host}:80` }), [405]],
    ['absolute form', request([CLOSE], { target: `http://${host}/` }), [400]],
    [
      'absolute form with a credential',
      request([CLOSE], { target: `http://ann:correct%20horse@${host}/` }),
      [400],
    ],
    ['absolute form of another host', request([CLOSE], { target: 'http://other/' }), [400]],
    ['HTTP/1.0', request([], { version: '1.0' }), [401]],
    ['upper case', request([CLOSE], { to: host.toUpperCase() }), [401]],
    ['trailing dot', request([CLOSE], { to: `${host}.` }), [401]],
    ['port', request([CLOSE], { to: `${host}:443` }), [401]],
    ['dot and port', request([CLOSE], { to: `${host}.:80` }), [401]],
    ['empty port', request([CLOSE], { to: `${host}:` }), [401]],
    ['two hosts', request([CLOSE, 'Host: other'], {}), [400]],
    ['two equal hosts', request([CLOSE, `Host: ${host}`], {}), [400]],
    ['forwarded host', request([CLOSE, `X-Forwarded-Host: ${host}`], { to: 'other' }), [404]],
    ['path of the edge', request([CLOSE], { target: '/.adit/../' }), [404]],
    ['path like one of the edge', request([CLOSE], { target: '//.adit/health' }), [401]],
    ['encoded path of the edge', request([CLOSE], { target: '/%2eadit/health' }), [401]],
    ['path of the edge without slash', request([CLOSE], { target: '/.adit' }), [401]],
    ['query', request([CLOSE], { target: '/?/.adit/health' }), [401]],
    ['expectation', request([CLOSE, 'Expect: 200-maybe']), [401]],
    ['WebSocket', request(['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13']), [401]],
    ['other upgrade', request(['Connection: Upgrade', 'Upgrade: x']), [401]],
    ['HTTP/2 upgrade', request(['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c']), [401]],
    ['upgrade of the edge', request(['Connection: Upgrade', 'Upgrade: x'], { target: '/.adit/x' }), [404]],
  ]
  for (const [what, bytes, statuses] of rejected) assert.deepEqual(await readStatuses(bytes), statuses, what)
  assert.equal(local.requests.length, before)
})

test('only one complete credential in one Authorization header is accepted', async () => {
  const before = local.requests.length
  const encoded = RIGHT.slice('Basic '.length)
  const headers: Record<string, string[]> = {
    none: [],
    empty: ['Authorization:'],
    'another scheme': [`Authorization: Bearer ${encoded}`],
    'no scheme': [`Authorization: ${encoded}`],
    'in another header': [`Proxy-Authorization: ${RIGHT}`, `X-Authorization: ${RIGHT}`, `Cookie: ${RIGHT}`],
    'right, then wrong': [`Authorization: ${RIGHT}`, `Authorization: ${basic('ann:wrong password')}`],
    'wrong, then right': [`Authorization: ${basic('ann:wrong password')}`, `Authorization: ${RIGHT}`],
    'right twice': [`Authorization: ${RIGHT}`, `authorization: ${RIGHT}`],
    'two in one': [`Authorization: ${RIGHT}, ${RIGHT}`],
    'another user': [`Authorization: ${basic('Ann:correct horse')}`],
    'no user': [`Authorization: ${basic(':correct horse')}`],
    'no colon': [`Authorization: ${basic('anncorrect horse')}`],
    'longer password': [`Authorization: ${basic('ann:correct horse ')}`],
    'shorter password': [`Authorization: ${basic('ann:correct hors')}`],
    'a NUL': [`Authorization: ${basic('ann:correct horse\u0000')}`],
    'not UTF-8': [
      `Authorization: Basic ${Buffer.from('ann:correct horse\xff', 'latin1').toString('base64')}`,
    ],
    'very long': [`Authorization: ${basic(`ann:${'x'.repeat(9_000)}`)}`],
    'the hash of the rule': [
      `Authorization: ${basic('ann:$scrypt$ln=14,r=8,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAA')}`,
    ],
  }
  for (const [what, lines] of Object.entries(headers))
    assert.deepEqual(await readStatuses(request([CLOSE, ...lines])), [401], what)
  // In a trailer, and in a second line of a folded header.
  const trailer = `0\r\nAuthorization: ${RIGHT}\r\n\r\n`
  const chunked = [CLOSE, 'Transfer-Encoding: chunked', 'Trailer: Authorization']
  assert.deepEqual(await readStatuses(request(chunked, { method: 'POST', body: trailer })), [401])
  assert.notDeepEqual(await readStatuses(request([CLOSE, `Authorization: x\r\n ${RIGHT}`])), [200])
  assert.equal(local.requests.length, before)
  for (const accepted of [RIGHT, `basic ${encoded}`, `BASIC   ${encoded}`])
    assert.deepEqual(await readStatuses(request([CLOSE, `authorization: ${accepted}`])), [200], accepted)
})

test('every request of a connection is checked on its own', async () => {
  const before = local.requests.length
  const right = request([`Authorization: ${RIGHT}`])
  const wrong = request([`Authorization: ${basic('ann:wrong password')}`])
  const bytes = [right, request([]), right, wrong, request(['Connection: Upgrade', 'Upgrade: x'])].join('')
  assert.deepEqual(await readStatuses(bytes), [200, 401, 200, 401, 401])
  assert.equal(local.requests.length, before + 2)
})

test('the local server does not get the credential that the edge has checked', async (t) => {
  const { body } = await fetchHost(edge, host, { headers: { authorization: RIGHT, 'x-other': 'kept' } })
  const { headers } = JSON.parse(String(body))
  assert.equal(headers.authorization, undefined)
  assert.equal(headers['x-other'], 'kept')
  const socket = await openSocket(edge, host, withPassword)
  socket.terminate()
  const open = await openTunnel(t, {
    edge,
    key,
    port: local.port,
    name: 'open',
    flags: ['--allow-ip', '::/0'],
  })
  const passed = await fetchHost(edge, open.host, {
    headers: { authorization: RIGHT, 'x-forwarded-for': '2001:db8::1' },
  })
  assert.equal(JSON.parse(String(passed.body)).headers.authorization, RIGHT)
})

test('unknown members of an opening are 400 and named: a misspelled rule opens no public tunnel', async () => {
  const basicAuth = { user: 'ann', password: 'correct horse' }
  const openings: [object, RegExp][] = [
    [
      { access: { allowIP: ['10.0.0.0/8'] } },
      /Unknown member .*allowIP.* of access .expected basicAuth and allowIp/,
    ],
    [{ access: { basicauth: basicAuth } }, /Unknown member .*basicauth.* of access/],
    [{ access: { basicAuth: { ...basicAuth, realm: 'x' } } }, /Unknown member .*realm.* of basicAuth/],
    [{ acess: { allowIp: ['10.0.0.0/8'] } }, /Unknown member .*acess.* of Adit-Tunnel .expected type, name/],
    [{ access: ['10.0.0.0/8'] }, /Unknown member .*0.* of access/],
  ]
  for (const [opening, message] of openings) {
    const { status, body } = await sendRaw(edge.url, upgradeRequest(key, opening))
    assert.equal(status, 400, body)
    assert.match(JSON.parse(body).message, message)
  }
})

test('a WebSocket needs the password, and stays open', async () => {
  await assert.rejects(openSocket(edge, host), /401/)
  await assert.rejects(
    openSocket(edge, host, { headers: { authorization: basic('ann:wrong password') } }),
    /401/,
  )
  const socket = await openSocket(edge, host, withPassword)
  socket.send('hello')
  const [echo] = await new Promise<unknown[]>((resolve) => socket.once('message', (...args) => resolve(args)))
  assert.equal(String(echo), 'hello')
  socket.terminate()
})

test('the response to a missing and to a wrong password says which it is', async () => {
  const json = async (authorization?: string) => {
    const headers = { accept: 'application/json', ...(authorization && { authorization }) }
    const { status, body, ...response } = await fetchHost(edge, host, { headers })
    assert.equal(status, 401)
    assert.equal(response.headers['www-authenticate'], `Basic realm="${host}", charset="UTF-8"`)
    return JSON.parse(String(body)).error
  }
  assert.equal(await json(), 'unauthorized')
  for (const wrong of [basic('ann:wrong password'), basic('ann:short'), 'Bearer x'])
    assert.equal(await json(wrong), 'wrong_password')
})

test('only allowed addresses get through, by the address that trusted proxies report', async (t) => {
  const flags = ['203.0.113.0/25', '198.51.100.7', '2001:db8::/32'].flatMap((network) => [
    '--allow-ip',
    network,
  ])
  const { host } = await openTunnel(t, { edge, key, port: local.port, name: 'office', flags })
  const statusFrom = async (address: string) =>
    (await fetchHost(edge, host, { headers: { 'x-forwarded-for': address } })).status
  for (const address of [
    '203.0.113.1',
    '203.0.113.127',
    '198.51.100.7',
    '2001:db8:9::1',
    '::ffff:203.0.113.1',
  ])
    assert.equal(await statusFrom(address), 200, address)
  // The client has sent the entries before the last, and the last is the proxy's.
  const rejected = [
    '203.0.113.128',
    '198.51.100.8',
    '2001:db9::1',
    '203.0.113.1, 192.0.2.5',
    '127.0.0.1',
    'unknown',
  ]
  for (const address of [...rejected, '203.0.113.1, unknown', '', '203.0.113.1, '])
    assert.equal(await statusFrom(address), 403, address)
  // A trusted proxy that reports no address.
  assert.equal((await fetchHost(edge, host)).status, 403)
  await assert.rejects(openSocket(edge, host, { headers: { 'x-forwarded-for': '192.0.2.5' } }), /403/)
  const socket = await openSocket(edge, host, { headers: { 'x-forwarded-for': '203.0.113.1' } })
  socket.terminate()
})

test('a client that is not a trusted proxy cannot choose its address', async (t) => {
  const { edge, keys, local } = untrusting
  const options = { edge, key: keys[0] as string, port: local.port }
  const remote = await openTunnel(t, { ...options, name: 'remote', flags: ['--allow-ip', '203.0.113.1'] })
  for (const name of ['x-forwarded-for', 'forwarded', 'x-real-ip', 'x-client-ip', 'cf-connecting-ip'])
    assert.equal(
      (await fetchHost(edge, remote.host, { headers: { [name]: '203.0.113.1' } })).status,
      403,
      name,
    )
  const here = await openTunnel(t, { ...options, name: 'here', flags: ['--allow-ip', '127.0.0.0/8'] })
  assert.equal(
    (await fetchHost(edge, here.host, { headers: { 'x-forwarded-for': '203.0.113.1' } })).status,
    200,
  )
})

test('a TCP tunnel accepts connections of allowed addresses only', async () => {
  const { edge, keys } = untrusting
  const [key = ''] = keys
  const dial = async (allowIp: string[], name: string) => {
    const tunnel = await openRawTunnel(edge, key, { type: 'tcp', name, access: { allowIp } })
    const socket = connect(Number(new URL(tunnel.url).port), '127.0.0.1')
    socket.on('error', () => {})
    socket.write('hello')
    await until('it is closed or arrives', () => socket.destroyed || tunnel.streams().length > 0)
    socket.resume().destroy()
    const arrived = tunnel.streams().length
    tunnel.close()
    return arrived
  }
  assert.equal(await dial(['127.0.0.1'], 'here'), 1)
  assert.equal(await dial(['203.0.113.1', '::/0'], 'elsewhere'), 0)
})

test('the edge rejects invalid rules with the reason, and never repeats a password', async () => {
  const open = (access: unknown, type: 'http' | 'tcp' = 'http') =>
    openRawTunnel(edge, key, { type, access: access as object })
  const basicAuth = { user: 'ann', password: 'correct horse' }
  for (const [access, message] of [
    [{ basicAuth: { ...basicAuth, user: 'a:b' } }, /Invalid user for basic authentication/i],
    [
      { basicAuth: { ...basicAuth, password: 'short' } },
      /Invalid password .*\(expected 8 to 128 characters\)/i,
    ],
    [{ basicAuth: 'ann:correct horse' }, /Invalid user/i],
    [{ basicAuth: null }, /Invalid user/i],
    [{ allowIp: ['10.0.0.0/33'] }, /Invalid address or network "10\.0\.0\.0\/33"/i],
    [{ allowIp: '10.0.0.0/8' }, /At most 50/i],
    [{ allowIp: Array(51).fill('10.0.0.0/8') }, /At most 50/i],
    [{ allowIp: [10] }, /Invalid address/i],
    ['x', /must be an object/],
    [null, /must be an object/],
  ] as const)
    await assert.rejects(open(access), (error: Error) => {
      assert.match(error.message, message)
      assert.ok(!/short|correct horse/.test(error.message))
      return true
    })
  await assert.rejects(open({ basicAuth }, 'tcp'), /A TCP tunnel cannot have basic authentication/i)
})

test('all clients of a pool have the same rules', async () => {
  const basicAuth = { user: 'ann', password: 'correct horse' }
  const join = (access?: object) =>
    openRawTunnel(edge, key, { name: 'pool', pool: true, ...(access && { access }) })
  const first = await join({ basicAuth, allowIp: ['10.0.0.0/8', '::1'] })
  for (const access of [
    undefined,
    { allowIp: ['10.0.0.0/8', '::1'] },
    { basicAuth },
    { basicAuth: { ...basicAuth, password: 'wrong horse' }, allowIp: ['10.0.0.0/8', '::1'] },
    { basicAuth: { ...basicAuth, user: 'bob' }, allowIp: ['10.0.0.0/8', '::1'] },
  ])
    await assert.rejects(join(access), /different access rules/)
  const second = await join({ basicAuth, allowIp: ['::1/128', '10.0.0.0/8', '::1'] })
  for (const tunnel of [first, second]) tunnel.close()
})

test('clients that join a new pool at the same time have the same rules', async () => {
  const access = { basicAuth: { user: 'ann', password: 'correct horse' } }
  const joining = Array.from({ length: 5 }, () =>
    openRawTunnel(edge, key, { name: 'rush', pool: true, access }),
  )
  for (const tunnel of await Promise.all(joining)) tunnel.close()
})

test('the password is in no output of the edge', async () => {
  edge.child.kill('SIGTERM')
  const { stdout, stderr } = await edge.ended
  const output = stdout + stderr
  assert.match(output, /"host":"private\.acme\.tunnels\.test".*"tunnel basic auth failed"/)
  assert.ok(!/correct horse|wrong password|Y29ycmVjd/.test(output))
})
