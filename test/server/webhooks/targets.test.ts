// Requests go to public addresses and configured networks only, however a target is written or resolved.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { isPublicAddress } from '../../../src/lib/net/public-address.ts'
import { createTargets } from '../../../src/server/outbound/targets.ts'
import { sendWebhook } from '../../../src/server/webhooks/send.ts'
import { responses, startReceiver } from '../../support/events/webhook-receiver.ts'
import { startDnsServer } from '../../support/network/dns-server.ts'
import { listen } from '../../support/network/listen.ts'
import { freePort } from '../../support/processes/ports.ts'
import { makeCertificate } from '../../support/proxies/certificates.ts'

const RECEIVED_TOO_MUCH = 'The request failed: too much was received before the response.'

const { signal } = new AbortController()
const publicOnly = createTargets({ privateNetworks: [] })
const webhook = (url: string) => ({ url, headers: { 'webhook-id': 'evt_1' }, body: '{}' })
const send = (url: string, targets = publicOnly, timeoutMs?: number) =>
  sendWebhook(webhook(url), { targets, signal, ...(timeoutMs && { timeoutMs }) })

/** Written in every form that reaches an address which is not public. */
const FORBIDDEN = [
  '127.0.0.1',
  '127.1',
  '2130706433',
  '0x7f000001',
  '0x7f.0.0.1',
  '0177.0.0.1',
  '017700000001',
  '127.0.0.1.',
  '１２７.0.0.1',
  '0.0.0.0',
  '0',
  '10.1.2.3',
  '100.64.0.1',
  '100.100.100.200',
  '169.254.169.254',
  '0xa9fea9fe',
  '2852039166',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.192',
  '192.168.1.1',
  '198.18.0.1',
  '168.63.129.16',
  '224.0.0.1',
  '255.255.255.255',
  '[::]',
  '[::1]',
  '[::127.0.0.1]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[0:0:0:0:0:ffff:a9fe:a9fe]',
  '[64:ff9b::7f00:1]',
  '[64:ff9b::10.0.0.1]',
  '[64:ff9b::1]',
  '[64:ff9b:1::1]',
  '[2002:7f00:1::]',
  '[2001::1]',
  '[2001:db8::1]',
  '[fe80::1]',
  '[fc00::1]',
  '[fd00:ec2::254]',
  '[ff02::1]',
  '[100::1]',
  'localhost',
  'LOCALHOST',
  'localhost.',
  'a.localhost',
]

test('targets that are not public are rejected in every form of their address', async () => {
  for (const host of FORBIDDEN)
    for (const scheme of ['https', 'http']) {
      assert.ok(publicOnly.isForbiddenLiteral(new URL(`${scheme}://${host}/`)), host)
      const { status, error } = await send(`${scheme}://${host}/`)
      assert.equal(status, null, host)
      assert.match(error ?? '', /not public|did not resolve to public addresses/, host)
    }
})

test('public addresses are allowed, also through NAT64', () => {
  for (const address of [
    '1.1.1.1',
    '172.32.0.1',
    '8.8.8.8',
    '2606:4700::1111',
    '64:ff9b::808:808',
    '::ffff:8.8.8.8',
  ])
    assert.ok(isPublicAddress(address), address)
  assert.equal(isPublicAddress('example.com'), false)
})

test('http is for configured networks only', async () => {
  const { error } = await send('http://8.8.8.8/')
  assert.match(error ?? '', /https/)
})

test('a name is rejected if one of its addresses is not public, and the message does not say which it has', async (t) => {
  const answers: Record<string, string[]> = {
    'internal.example': ['10.0.0.5'],
    'mixed.example': ['8.8.8.8', '127.0.0.1'],
    'mapped.example': ['0:0:0:0:0:ffff:a00:1'],
    'metadata.example': ['fd00:ec2:0:0:0:0:0:254'],
    'missing.example': [],
  }
  const dns = await startDnsServer(t, (name) => answers[name])
  const targets = createTargets({ privateNetworks: [], dnsServers: dns.getServers() })
  const errors = new Set<string>()
  for (const name of Object.keys(answers)) errors.add((await send(`https://${name}/`, targets)).error ?? '')
  assert.equal(errors.size, 1)
  assert.match([...errors][0] ?? '', /did not resolve to public addresses/)
})

test('the connection is made to the address that was checked, though DNS then has another one', async (t) => {
  const port = await freePort()
  const allowed = await startReceiver(t, responses.ok, { port, host: '127.0.0.2' })
  const forbidden = createServer((_, response) => response.end())
  let connections = 0
  forbidden.on('connection', () => {
    connections += 1
  })
  await listen(t, forbidden, port)
  let queries = 0
  // The first request asks for IPv4 and for IPv6.
  const dns = await startDnsServer(t, () => [queries++ < 2 ? '127.0.0.2' : '127.0.0.1'])
  const targets = createTargets({ privateNetworks: ['127.0.0.2/32'], dnsServers: dns.getServers() })
  const url = `http://rebound.example:${port}/hook`
  assert.equal((await send(url, targets)).status, 204)
  assert.match((await send(url, targets)).error ?? '', /did not resolve to public addresses/)
  assert.equal(allowed.received.length, 1)
  assert.equal(connections, 0)
})

const loopback = createTargets({ privateNetworks: ['127.0.0.1/32'] })

test('localhost is the loopback addresses of the configured networks', async (t) => {
  const receiver = await startReceiver(t)
  assert.equal((await send(receiver.url.replace('127.0.0.1', 'localhost'), loopback)).status, 204)
})

test('a certificate that is not trusted is reported as a failure of TLS', async (t) => {
  const files = makeCertificate(t, 'IP:127.0.0.1')
  if (!files) return t.skip('openssl is not installed')
  const [key, cert] = [readFileSync(files.key), readFileSync(files.certificate)]
  const server = createHttpsServer({ key, cert }, (_, response) => response.end())
  const port = await listen(t, server)
  assert.match((await send(`https://127.0.0.1:${port}/`, loopback)).error ?? '', /^TLS failed: /)
})

test('redirects are not followed', async (t) => {
  const target = await startReceiver(t)
  const receiver = await startReceiver(t, (response) =>
    response.writeHead(307, { location: target.url }).end(),
  )
  assert.equal((await send(receiver.url, loopback)).status, 307)
  assert.equal(target.received.length, 0)
})

test('a response is cut off at a size and a time, and its status counts', async (t) => {
  const endless = await startReceiver(t, (response) => {
    response.writeHead(200)
    const write = () => {
      while (response.write('x'.repeat(65_536)));
    }
    response.on('drain', write)
    write()
  })
  const { status, response } = await send(endless.url, loopback)
  assert.deepEqual([status, response?.length], [200, 1_000])
  const unfinished = await startReceiver(t, (each) => each.writeHead(200).write('part'))
  assert.equal((await send(unfinished.url, loopback, 200)).status, 200)
})

test('a request without a response, with an invalid one or with headers that are too large has failed', async (t) => {
  const hanging = await startReceiver(t, responses.hang)
  assert.match((await send(hanging.url, loopback, 100)).error ?? '', /No response within 0.1 seconds/)
  const invalid = await startReceiver(t, (response) => response.socket?.end('SSH-2.0\r\n\r\n'))
  assert.match((await send(invalid.url, loopback)).error ?? '', /not valid HTTP/)
  const large = await startReceiver(t, (response) => response.writeHead(200, { x: 'x'.repeat(20_000) }).end())
  assert.match((await send(large.url, loopback)).error ?? '', /too large/)
  await hanging.close()
  assert.match((await send(hanging.url, loopback)).error ?? '', /refused/)
})

test('a response that switches protocols has failed, also if the connection then stays open', async (t) => {
  const head = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'
  const receiver = await startReceiver(t, (response) => response.socket?.write(head))
  const settled = await Promise.race([send(receiver.url, loopback, 200), delay(5_000, 'pending')])
  assert.deepEqual(settled, { status: 101, response: '', error: null })
})

test('a receiver that sends without end before its response, or between its parts, is disconnected', async (t) => {
  const floods = {
    informational: ['', 'HTTP/1.1 103 Early Hints\r\n\r\n'],
    'empty lines': ['', '\r\n'],
    extensions: ['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n', `1;${'x'.repeat(1_000)}\r\nx\r\n`],
  }
  const results: Record<string, Awaited<ReturnType<typeof send>>> = {}
  for (const [name, [head = '', unit = '']] of Object.entries(floods)) {
    const receiver = await startReceiver(t, ({ socket }) => {
      socket?.on('error', () => {})
      const write = () => {
        while (socket?.writable && socket.write(unit.repeat(1_000)));
      }
      socket?.on('drain', write)
      socket?.write(head)
      write()
    })
    results[name] = await send(receiver.url, loopback, 60_000)
  }
  const error = RECEIVED_TOO_MUCH
  assert.deepEqual(results.informational, { status: null, response: null, error })
  assert.deepEqual(results['empty lines'], { status: null, response: null, error })
  assert.equal(results.extensions?.status, 200)
})

/** A receiver by TLS, whose certificate this process trusts; undefined without an openssl that can be one. */
async function startTlsReceiver(t: TestContext, ...options: string[]) {
  const files = makeCertificate(t, 'IP:127.0.0.1')
  if (!files) return undefined
  const trusted = getCACertificates()
  setDefaultCACertificates([...trusted, readFileSync(files.certificate, 'utf8')])
  t.after(() => setDefaultCACertificates(trusted))
  const port = await freePort()
  const server = spawn('openssl', [
    ...['s_server', '-accept', `127.0.0.1:${port}`, '-key', files.key, '-cert', files.certificate],
    ...options,
  ])
  t.after(() => server.kill('SIGKILL'))
  const isListening = await new Promise<boolean>((resolve) => {
    let printed = ''
    // It may print other lines before it listens.
    server.stdout.on('data', (chunk: Buffer) => {
      if (printed.length < 10_000) printed += chunk
      if (printed.includes('ACCEPT')) resolve(true)
    })
    server.once('close', () => resolve(false))
  })
  return isListening ? { url: `https://127.0.0.1:${port}/`, stdin: server.stdin } : undefined
}

test('a receiver that sends TLS session tickets without end is disconnected', async (t) => {
  const receiver = await startTlsReceiver(t, '-tls1_3', '-num_tickets', '100000000')
  if (!receiver) return t.skip('openssl is not installed')
  assert.equal((await send(receiver.url, loopback, 60_000)).error, RECEIVED_TOO_MUCH)
})

test('a receiver that updates the keys of TLS without end is disconnected', async (t) => {
  const receiver = await startTlsReceiver(t, '-tls1_3')
  if (!receiver) return t.skip('openssl is not installed')
  // Each line is a command to update the keys.
  const write = () => {
    while (receiver.stdin.writable && receiver.stdin.write('K\n'.repeat(1_000)));
  }
  receiver.stdin.on('error', () => {})
  receiver.stdin.on('drain', write)
  write()
  assert.equal((await send(receiver.url, loopback, 60_000)).error, RECEIVED_TOO_MUCH)
})

test('the logged response has no control, bidirectional or invisible characters', async (t) => {
  const shown = 'ok\n\tשלום 👩‍👩‍👧 ❤️ <script>'
  const hidden = '\u0000\u001b\u007f\u009b\u00ad\u061c\u200b\u200e\u2028\u202e\u2066\ufeff\ufff9\u{e0041}'
  const receiver = await startReceiver(t, (response) => response.end(hidden + shown))
  const { response } = await send(receiver.url, loopback)
  assert.equal(response, '\u{fffd}'.repeat([...hidden].length) + shown)
})
