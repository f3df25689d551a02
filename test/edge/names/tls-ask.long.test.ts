// `GET /.adit/tls-ask`: for which hosts a proxy in front of an edge may obtain certificates.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TlsAsk } from '../../../src/edge/certificates/tls-ask.ts'
import { ControlPlaneError, type HostResult } from '../../../src/edge-sdk/index.ts'
import { openRawTunnel, startStandaloneEdge } from '../../support/edges/standalone-edge.ts'
import { type Edge, fetchHost, newKey, startPlane, startTunnelEdge } from '../../support/edges/tunnels.ts'
import { freePorts } from '../../support/processes/ports.ts'

const PROXY = '127.0.0.1'

async function ask(edge: Edge, domain: string, headers: Record<string, string> = {}) {
  const path = `/.adit/tls-ask?domain=${encodeURIComponent(domain)}`
  return (await fetchHost(edge, `${PROXY}:${edge.port}`, { path, headers })).status
}

test('a certificate is allowed for open HTTP tunnels and tunnel domains only', async (t) => {
  const { edge, keys } = await startStandaloneEdge(t, ['acme'], {
    ADIT_EDGE_TCP_PORTS: (await freePorts(10)).range,
  })
  const [key = ''] = keys
  assert.equal(await ask(edge, 'app.acme.tunnels.test'), 404)
  const tunnel = await openRawTunnel(edge, key, { name: 'app' })
  const tcp = await openRawTunnel(edge, key, { name: 'db', type: 'tcp' })
  t.after(() => [tunnel, tcp].map(({ close }) => close()))
  for (const domain of [
    'app.acme.tunnels.test',
    'APP.acme.tunnels.test.',
    'acme.tunnels.test',
    'tunnels.test',
  ])
    assert.equal(await ask(edge, domain), 200, domain)
  const others = [
    '',
    '.',
    '*',
    '*.acme',
    'db.acme',
    'x.app.acme',
    'beta',
    'app.beta',
    'app_acme',
    'app.acme:443',
  ]
  for (const domain of [
    ...others.map((name) => `${name}.tunnels.test`),
    '',
    ' ',
    '\0',
    '127.0.0.1',
    'a'.repeat(9_999),
  ])
    assert.equal(await ask(edge, domain), 404, domain)
  const withoutDomain = await fetchHost(edge, PROXY, { path: '/.adit/tls-ask' })
  assert.equal(withoutDomain.status, 404)
})

test('only the proxy itself may ask, not its clients or others', async (t) => {
  const { edge } = await startStandaloneEdge(t, ['acme'])
  assert.equal(await ask(edge, 'tunnels.test'), 200)
  assert.equal(await ask(edge, 'tunnels.test', { 'x-forwarded-for': '203.0.113.9' }), 404)
  assert.equal(await ask(edge, 'tunnels.test', { 'x-forwarded-for': '' }), 404)
  const elsewhere = await startStandaloneEdge(t, ['acme'], { ADIT_EDGE_TRUSTED_PROXIES: '192.0.2.1' })
  assert.equal(await ask(elsewhere.edge, 'tunnels.test'), 404)
})

test('a workspace has a limit of hosts with certificates, and those it has stay allowed', async (t) => {
  const { edge, keys } = await startStandaloneEdge(t, ['acme', 'beta'], {
    ADIT_EDGE_CERTIFICATES_PER_DAY: '2',
  })
  const hosts: string[] = []
  for (const [key, name] of [
    [keys[0], 'a'],
    [keys[0], 'b'],
    [keys[0], 'c'],
    [keys[1], 'a'],
  ] as const) {
    const { host, close } = await openRawTunnel(edge, key as string, { name })
    t.after(close)
    hosts.push(host)
  }
  const statuses = async () => {
    const all: number[] = []
    for (const host of hosts) all.push(await ask(edge, host))
    return all
  }
  assert.deepEqual(await statuses(), [200, 200, 429, 200])
  assert.deepEqual(await statuses(), [200, 200, 429, 200])
  edge.child.kill('SIGTERM')
  const { stderr } = await edge.ended
  assert.equal(stderr.match(/raise ADIT_EDGE_CERTIFICATES_PER_DAY/g)?.length, 1, stderr)
})

test('unknown hosts cost the control plane a limited number of lookups, and open tunnels none', async (t) => {
  const plane = await startPlane(t, ['acme'], { ADIT_TUNNEL_DOMAIN: 'tunnels.test' })
  const edge = await startTunnelEdge(t, { plane })
  const { host, close } = await openRawTunnel(edge, await newKey(plane, 'acme'), { name: 'app' })
  t.after(close)
  assert.equal(await ask(edge, 'acme.tunnels.test'), 200)
  assert.equal(await ask(edge, 'beta.tunnels.test'), 404)
  await plane.admin('workspace', 'create', 'beta')
  assert.equal(await ask(edge, 'beta.tunnels.test'), 200)
  // Again on a machine that takes so long for them that more become allowed meanwhile.
  const statuses = new Set<number>()
  for (let round = 0; round < 20 && !statuses.has(429); round++)
    for (const status of await Promise.all(
      Array.from({ length: 300 }, (_, index) => ask(edge, `x${round}-${index}.tunnels.test`)),
    ))
      statuses.add(status)
  assert.deepEqual(statuses, new Set([404, 429]))
  // Known hosts are cached.
  for (const domain of [host, 'beta.tunnels.test']) assert.equal(await ask(edge, domain), 200, domain)
  plane.child.kill('SIGKILL')
  await plane.ended
  for (const domain of [host, 'beta.tunnels.test']) assert.equal(await ask(edge, domain), 200, domain)
  let status = 429
  while (status === 429) status = await ask(edge, 'gamma.tunnels.test')
  assert.equal(status, 503)
})

const noTunnels = {
  registry: { atHost: () => undefined },
  certificatesPerDay: 500,
  certificatesTotalPerDay: 2_500,
  onCertificatesLimited: () => undefined,
}

test('a flood of unknown hosts does not keep out hosts that were found before', async () => {
  let now = 0
  const findHost = async (host: string): Promise<HostResult> =>
    host.startsWith('acme') ? { found: true, workspace: 'acme' } : { found: false }
  const tlsAsk = new TlsAsk({ ...noTunnels, findHost }, () => now)
  const askStatus = async (host: string) => (await tlsAsk.ask(host)).status
  assert.equal(await askStatus('acme.tunnels.test'), 200)
  // Beyond the time for which it is cached.
  now = 120_000
  for (let index = 0; index < 100; index++) await askStatus(`x${index}.tunnels.test`)
  assert.equal(await askStatus('other.tunnels.test'), 429)
  assert.equal(await askStatus('acme.tunnels.test'), 200)
})

test('the reason why the control plane was of no help is in the response', async () => {
  const messageFor = async (status: number | undefined, message = '') => {
    const findHost = () => Promise.reject(new ControlPlaneError(message, status))
    const tlsAsk = new TlsAsk({ ...noTunnels, findHost })
    const answer = await tlsAsk.ask('app.acme.tunnels.test')
    assert.equal(answer.status, 503)
    return answer.message
  }
  assert.match(await messageFor(undefined), /the control plane is unreachable\.$/)
  assert.match(await messageFor(401), /the control plane rejects the credential of this edge\.$/)
  assert.match(await messageFor(429, 'Too many calls.'), /could not be asked: Too many calls\.$/)
})

test('many workspaces together cannot use up the certificates of an edge', async () => {
  let now = 0
  const limited = new Map<string, string>()
  const findHost = async (host: string): Promise<HostResult> => ({
    found: true,
    workspace: host.split('.')[1] ?? '',
  })
  const onCertificatesLimited = (workspace: string, setting: string) => limited.set(workspace, setting)
  const tlsAsk = new TlsAsk({ ...noTunnels, findHost, onCertificatesLimited }, () => now)
  const isAllowed = async (host: string) => {
    // Lookups have a limit, which is not reached at this rate.
    now += 50
    return (await tlsAsk.ask(host)).status === 200
  }
  const countAllowed = async (workspace: string) => {
    let count = 0
    while (await isAllowed(`h${count}.${workspace}.tunnels.test`)) count += 1
    return count
  }
  assert.equal(await countAllowed('first'), 500)
  const counts: number[] = []
  for (let index = 0; index < 19; index++) counts.push(await countAllowed(`w${index}`))
  assert.equal(counts[0], 400)
  assert.equal(limited.get('first'), 'ADIT_EDGE_CERTIFICATES_PER_DAY')
  assert.equal(limited.get('w0'), 'ADIT_EDGE_CERTIFICATES_TOTAL_PER_DAY')
  // 20 workspaces of two users leave some for others.
  assert.ok((await countAllowed('other')) >= 5)
  assert.equal(await isAllowed('h0.first.tunnels.test'), true)
  now += 24 * 60 * 60 * 1_000
  assert.equal(await isAllowed('new.first.tunnels.test'), true)
})
