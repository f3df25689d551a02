// Access rules of a name. The control plane sends them to the edge, and may change them while a tunnel is
// open.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { EdgeOptions } from '../../../src/edge/options.ts'
import { startEdge } from '../../../src/edge/start.ts'
import { openLocalPorts } from '../../../src/edge/tcp/local-ports.ts'
import type { Tunnel } from '../../../src/edge/tunnels/tunnel.ts'
import { openTokensFile, type TunnelReporter } from '../../../src/edge-sdk/index.ts'
import { hashPassword } from '../../../src/lib/credentials/password-hash.ts'
import type { RequestedAccess } from '../../../src/tunnel-protocol/protocol.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { createFolder } from '../../support/databases/create.ts'
import { openRawTunnel } from '../../support/edges/standalone-edge.ts'
import { fetchHost } from '../../support/edges/tunnels.ts'
import { freePort, freePorts } from '../../support/processes/ports.ts'
import { run } from '../../support/processes/process.ts'

const basic = (credential: string) => `Basic ${Buffer.from(credential).toString('base64')}`
const ruleFor = async (user: string, password: string) => ({
  basicAuth: { user, hash: await hashPassword(password, randomBytes) },
  allowIp: [],
})

const file = join(createFolder({ after }), 'tokens.json')
const { stdout } = await run({ after }, ['tokens-file', 'add', 'acme', '--file', file], {})
const key = stdout.trim()
const tunnels = new Map<string, Tunnel>()
const options: EdgeOptions = {
  host: '127.0.0.1',
  port: await freePort(),
  publicEndpoint: undefined,
  tcpHost: '127.0.0.1',
  certificatesPerDay: 1,
  certificatesTotalPerDay: 1,
  onCertificatesLimited: () => {},
  localPorts: await openLocalPorts({
    folder: createFolder({ after }),
    range: await freePorts(10),
    perWorkspace: 10,
    retentionDays: 7,
  }),
  trustedProxies: ['127.0.0.1/32'],
  startVerifier: ({ onRevoked }) => openTokensFile(file, { tunnelDomain: 'tunnels.test', onRevoked }),
  startReporter: undefined,
  meter: undefined,
  onOpened: (tunnel) => tunnels.set(tunnel.address.name, tunnel),
  onClosed: () => {},
  onWrongPassword: () => {},
  onPortUnavailable: () => {},
  onConnectionsLimited: () => {},
  onUnnamedClient: () => {},
  onIgnoredProxy: () => {},
}
const edge = await startEdge(options)
after(() => edge.stop())

async function open(name: string, access: RequestedAccess = {}, type: 'http' | 'tcp' = 'http') {
  const tunnel = await openRawTunnel(edge, key, { name, type, access })
  after(() => tunnel.close())
  tunnel.respond('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
  const { access: control } = tunnels.get(name) as Tunnel
  const send = (credential?: string, address = '203.0.113.1') =>
    fetchHost({ port: Number(new URL(edge.url).port) }, tunnel.host, {
      headers: {
        'x-forwarded-for': address,
        ...(credential !== undefined && { authorization: basic(credential) }),
      },
    }).then(({ status }) => status)
  return { ...tunnel, control, send }
}

test('changed rules of a name apply to the next request', async () => {
  const { control, send } = await open('changing')
  assert.equal(await send(), 200)
  control.setNameRules(await ruleFor('ann', 'first password'))
  assert.equal(await send(), 401)
  assert.equal(await send('ann:first password'), 200)
  control.setNameRules(await ruleFor('ann', 'second password'))
  assert.equal(await send('ann:first password'), 401)
  assert.equal(await send('ann:second password'), 200)
  control.setNameRules({ basicAuth: null, allowIp: ['10.0.0.0/8'] })
  assert.equal(await send(), 403)
  assert.equal(await send(undefined, '10.1.2.3'), 200)
  control.setNameRules(null)
  assert.equal(await send(), 200)
})

test('the Host header of a name applies to the next request, unless the client has its own', async () => {
  const target = 'http://localhost:3000'
  const hosts = async (name: string, hostHeader?: string) => {
    const tunnel = await openRawTunnel(edge, key, { name, target, hostHeader })
    after(() => tunnel.close())
    tunnel.respond('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
    const { access: control } = tunnels.get(name) as Tunnel
    for (const nameHeader of [undefined, 'rewrite', 'app.test', undefined]) {
      control.setNameRules({ basicAuth: null, allowIp: [], hostHeader: nameHeader })
      await fetchHost({ port: Number(new URL(edge.url).port) }, tunnel.host)
    }
    return tunnel.requests().map((request) => /^host: (.*)$/im.exec(request)?.[1]?.trim())
  }
  const own = 'hosted.acme.tunnels.test'
  assert.deepEqual(await hosts('hosted'), [own, 'localhost:3000', 'app.test', own])
  assert.deepEqual(await hosts('flagged', 'other.test'), Array(4).fill('other.test'))
})

test('rules that change while a password is verified apply to its request', async () => {
  const { control, send } = await open('meanwhile')
  control.setNameRules(await ruleFor('ann', 'first password'))
  const replacement = await ruleFor('ann', 'second password')
  const checked = Promise.withResolvers<void>()
  const check = control.check.bind(control)
  control.check = (...request) => {
    checked.resolve()
    return check(...request)
  }
  const pending = send('ann:first password')
  await checked.promise
  control.setNameRules(replacement)
  assert.equal(await pending, 401)
})

test('rules of the client and of the name both apply', async () => {
  const { control, send } = await open('both', { allowIp: ['203.0.113.0/24'] })
  control.setNameRules({ basicAuth: null, allowIp: ['203.0.113.1', '10.0.0.0/8'] })
  assert.deepEqual(
    [await send(), await send(undefined, '203.0.113.2'), await send(undefined, '10.0.0.1')],
    [200, 403, 403],
  )
  control.setNameRules(await ruleFor('ann', 'correct horse'))
  assert.equal(await send('ann:correct horse'), 200)
  assert.equal(await send('ann:correct horse', '10.0.0.1'), 403)
  assert.equal(await send(), 401)
})

test('a request needs both the password of the client and that of the name', async () => {
  const { control, send } = await open('twice', { basicAuth: { user: 'ann', password: 'correct horse' } })
  control.setNameRules(await ruleFor('ann', 'correct horse'))
  assert.equal(await send('ann:correct horse'), 200)
  control.setNameRules(await ruleFor('ann', 'another password'))
  assert.deepEqual([await send('ann:correct horse'), await send('ann:another password')], [401, 401])
})

test('rules that the edge cannot parse reject every request', async () => {
  const { control, send } = await open('malformed')
  for (const hash of [
    '',
    'correct horse',
    '$scrypt$ln=30,r=8,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAA',
    '$argon2id$v=19$x$x',
  ]) {
    control.setNameRules({ basicAuth: { user: 'ann', hash }, allowIp: [] })
    assert.equal(await send('ann:correct horse'), 401, hash)
  }
  control.setNameRules({ basicAuth: null, allowIp: ['everybody'] })
  assert.equal(await send(), 403)
})

test('a TCP tunnel whose name needs a password accepts no connection', async () => {
  const { control } = await open('tcp', {}, 'tcp')
  assert.ok(control.allowsConnection('203.0.113.1'))
  control.setNameRules(await ruleFor('ann', 'correct horse'))
  assert.ok(!control.allowsConnection('203.0.113.1'))
})

/** An edge whose claims the test decides. */
async function startClaimingEdge(t: Test, claim: TunnelReporter['claim']) {
  const started = Promise.withResolvers<Parameters<NonNullable<EdgeOptions['startReporter']>>[0]>()
  const claiming = await startEdge({
    ...options,
    localPorts: undefined,
    port: await freePort(),
    startReporter(callbacks) {
      started.resolve(callbacks)
      const done = async () => {}
      return {
        claim,
        opened() {},
        closed() {},
        syncNow() {},
        mayCarry: () => true,
        mayCarryUntil: () => undefined,
        release: done,
        stop: done,
      }
    },
  })
  atEnd(t, () => claiming.stop())
  return { ...claiming, port: Number(new URL(claiming.url).port), callbacks: await started.promise }
}

test('rules that change between the claim of a name and its opening apply', async (t) => {
  const access = await ruleFor('ann', 'correct horse')
  const claimed: string[] = []
  const claiming = await startClaimingEdge(t, async ({ id, name, workspace }) => {
    claimed.push(id)
    if (claimed.length > 1) return { granted: true, access }
    // The response to a later sync overtakes that to the claim.
    claiming.callbacks.onAccessRules({ workspace, name, access })
    return { granted: true, access: null }
  })
  const { host, close } = await openRawTunnel(claiming, key, { name: 'late' })
  assert.equal((await fetchHost(claiming, host)).status, 401)
  assert.equal(claimed.length, 2)
  assert.equal(claimed[0], claimed[1])
  close()
})

test('a name with a password is not opened with another one, nor as a TCP tunnel', async (t) => {
  const access = await ruleFor('ann', 'correct horse')
  const { first: port } = await freePorts(1)
  const claiming = await startClaimingEdge(t, async () => ({ granted: true, access, port }))
  const basicAuth = { user: 'ann', password: 'correct horse' }
  await assert.rejects(
    openRawTunnel(claiming, key, { name: 'both', access: { basicAuth } }),
    /The name "both" has a password of its own, set in the dashboard\. Open it without --basic-auth\./i,
  )
  await assert.rejects(
    openRawTunnel(claiming, key, { name: 'tcp', type: 'tcp' }),
    /The name "tcp" needs a password, which a TCP tunnel cannot have\./i,
  )
})

test('a client that reconnects with the same password keeps its hash', async () => {
  const request = {
    name: 'again',
    resume: 'r'.repeat(32),
    access: { basicAuth: { user: 'ann', password: 'correct horse' } },
  }
  const first = await openRawTunnel(edge, key, request)
  const { access } = tunnels.get('again') as Tunnel
  const before = access.clientRules
  const second = await openRawTunnel(edge, key, request)
  assert.equal(tunnels.get('again')?.access.clientRules, before)
  for (const tunnel of [first, second]) tunnel.close()
})
