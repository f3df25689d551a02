// Selection of the proxy by environment variables, and errors of connections through it.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { createServer as createTlsServer, getCACertificates, setDefaultCACertificates } from 'node:tls'
import { createClient } from '../../../src/client/index.ts'
import { createFetch } from '../../../src/lib/net/proxy/fetch.ts'
import { parseProxies } from '../../../src/lib/net/proxy/settings.ts'
import { connectThrough, ProxyError } from '../../../src/lib/net/proxy/tunnel.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { listen } from '../../support/network/listen.ts'
import { makeCertificate } from '../../support/proxies/certificates.ts'
import { startTinyproxy, tinyproxy } from '../../support/proxies/tinyproxy.ts'

const PROXY = 'http://proxy.example.com:3128'

test('the variable depends on the scheme, and lower case takes precedence', () => {
  const name = (environment: Record<string, string>, url: string) =>
    parseProxies(environment)(new URL(url))?.name
  assert.equal(name({}, 'https://a.test'), undefined)
  assert.equal(name({ HTTPS_PROXY: PROXY }, 'http://a.test'), undefined)
  assert.equal(name({ HTTP_PROXY: PROXY }, 'https://a.test'), undefined)
  assert.equal(name({ HTTPS_PROXY: PROXY }, 'https://a.test'), 'proxy.example.com:3128 (HTTPS_PROXY)')
  assert.equal(name({ HTTPS_PROXY: PROXY, https_proxy: 'other' }, 'https://a.test'), 'other:80 (https_proxy)')
  assert.equal(
    name({ HTTPS_PROXY: PROXY, https_proxy: ' ' }, 'https://a.test'),
    'proxy.example.com:3128 (HTTPS_PROXY)',
  )
  assert.equal(name({ http_proxy: 'https://[::1]' }, 'http://a.test'), '[::1]:443 (http_proxy)')
  assert.equal(name({ http_proxy: 'u:p@host:8080/' }, 'http://a.test'), 'host:8080 (http_proxy)')
})

test('user and password are decoded, and an invalid variable is named without its value', () => {
  const proxy = parseProxies({ HTTPS_PROXY: 'http://ann:p%40ss%3A%C3%A9@proxy' })(new URL('https://a.test'))
  assert.equal(proxy?.authorization, `Basic ${Buffer.from('ann:p@ss:é').toString('base64')}`)
  for (const value of ['socks5://u:secret@proxy', 'ftp://secret', 'http://', 'http://u:secret%ZZ@proxy'])
    assert.throws(
      () => parseProxies({ https_proxy: value }),
      ({ message }: Error) => message.startsWith('https_proxy must be') && !message.includes('secret'),
      value,
    )
})

test('NO_PROXY excludes domains, addresses, networks and ports', () => {
  const cases: [noProxy: string, excluded: string[], proxied: string[]][] = [
    ['*', ['https://a.test', 'https://[::1]'], []],
    [
      'a.test',
      ['https://a.test', 'https://b.a.test', 'https://A.TEST./x'],
      ['https://ba.test', 'https://a.test.org'],
    ],
    ['.a.test', ['https://a.test', 'https://b.a.test'], ['https://ba.test']],
    ['*.a.test', ['https://b.a.test'], ['https://b.test']],
    ['x.test, a.test  b.test,', ['https://a.test', 'https://b.test'], ['https://c.test']],
    ['192.0.2.1', ['https://192.0.2.1:8443'], ['https://192.0.2.10', 'https://1.192.0.2.1.test']],
    ['192.0.2.0/24', ['https://192.0.2.77'], ['https://192.0.3.1', 'https://a.test']],
    ['2001:db8::1', ['https://[2001:db8::1]'], ['https://[2001:db8::2]']],
    ['[2001:db8::1]:8443', ['https://[2001:db8:0::1]:8443'], ['https://[2001:db8::1]']],
    ['2001:db8::/32', ['https://[2001:db8:1::9]'], ['https://[2001:db9::1]', 'https://32.1.13.184']],
    ['a.test:8443', ['https://a.test:8443', 'https://b.a.test:8443'], ['https://a.test']],
    ['a.test:443', ['https://a.test'], ['https://a.test:8443']],
    ['', [], ['https://a.test', 'https://localhost']],
  ]
  for (const [noProxy, excluded, proxied] of cases) {
    const find = parseProxies({ HTTPS_PROXY: PROXY, no_proxy: noProxy })
    for (const url of excluded) assert.equal(find(new URL(url)), undefined, `${noProxy}: ${url}`)
    for (const url of proxied) assert.ok(find(new URL(url)), `${noProxy}: ${url}`)
  }
})

async function startServer(t: Test, onConnection: (socket: Socket) => void): Promise<number> {
  const server = createServer((socket) => {
    atEnd(t, () => socket.destroy())
    socket.on('error', () => {})
    onConnection(socket)
  })
  return listen(t, server)
}

/** The error of fetch through the proxy, by CONNECT and by the absolute form. */
async function messages(port: number): Promise<string[]> {
  const value = `http://ann:secret@127.0.0.1:${port}`
  const send = createFetch(parseProxies({ HTTPS_PROXY: value, HTTP_PROXY: value }))
  const urls = ['https://server.test/', 'http://server.test/']
  return Promise.all(
    urls.map((url) =>
      send(url).then(
        ({ status }) => assert.fail(`${url} responded with ${status}`),
        (error) => {
          assert.ok(error instanceof ProxyError, String(error))
          assert.ok(!error.message.includes('secret') && !error.message.includes('YW5u'), error.message)
          assert.ok(error.message.includes(`the proxy 127.0.0.1:${port} (HTTP`), error.message)
          return error.message
        },
      ),
    ),
  )
}

test('a proxy that is down, rejects or sends something else is named in the error', async (t) => {
  const responses: [response: string, expected: RegExp][] = [
    ['HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n', /with 407: set a valid user/],
    [
      'HTTP/1.1 403 Filtered\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n',
      /rejected .*: 403 Filtered$/,
    ],
    ['HTTP/1.1 502 \u001b[31mBad\r\n\r\n', /rejected .*: 502 |no valid HTTP response/],
    ['SSH-2.0-OpenSSH_9\r\n', /sent no valid HTTP response/],
    [`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(100_000)}`, /sent no valid HTTP response/],
  ]
  for (const [response, expected] of responses) {
    const port = await startServer(t, (socket) => socket.once('data', () => socket.end(response)))
    for (const message of await messages(port)) assert.match(message, expected)
  }
  const silent = await startServer(t, (socket) => socket.once('data', () => socket.destroy()))
  for (const message of await messages(silent)) assert.match(message, /cannot be reached: /)
})

test('tinyproxy rejects a wrong password and a forbidden port', async (t) => {
  if (!tinyproxy) return t.skip('tinyproxy is not installed')
  const guarded = await startTinyproxy(t, 'BasicAuth ann another')
  for (const message of await messages(guarded.port)) assert.match(message, /with 40[17]: set a valid user/)
  const limited = await startTinyproxy(t, 'ConnectPort 563')
  const send = createFetch(parseProxies({ HTTPS_PROXY: `127.0.0.1:${limited.port}` }))
  await assert.rejects(send('https://server.test'), /rejected the connection: 403 /)
})

test('a signal aborts a connection that the proxy does not complete', async (t) => {
  let closed: Promise<unknown> | undefined
  const port = await startServer(t, (socket) => {
    closed = once(socket.resume(), 'close')
  })
  const proxy = parseProxies({ HTTPS_PROXY: `127.0.0.1:${port}` })(new URL('https://a.test'))
  assert.ok(proxy)
  const controller = new AbortController()
  const connecting = connectThrough(proxy, new URL('https://a.test'), controller.signal)
  const failed = assert.rejects(connecting)
  while (!closed) await new Promise(setImmediate)
  controller.abort()
  await failed
  await closed
})

test('a connection that the proxy resets before anything uses it does not end the process', async (t) => {
  const port = await startServer(t, (socket) =>
    socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\n\r\n', () => socket.resetAndDestroy())),
  )
  const proxy = parseProxies({ HTTP_PROXY: `127.0.0.1:${port}` })(new URL('http://a.test'))
  assert.ok(proxy)
  const socket = await connectThrough(proxy, new URL('http://a.test'))
  await new Promise((resolve) => socket.resume().once('close', resolve))
  assert.equal((socket.errored as NodeJS.ErrnoException | null)?.code, 'ECONNRESET')
})

const REJECTION = 'HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n'

test('a rejected password is sent once: the client does not retry', async (t) => {
  let connections = 0
  const port = await startServer(t, (socket) => {
    connections++
    socket.once('data', () => socket.end(REJECTION))
  })
  const value = `http://ann:secret@127.0.0.1:${port}`
  const send = createFetch(parseProxies({ HTTPS_PROXY: value, HTTP_PROXY: value }))
  for (const baseUrl of ['https://server.test', 'http://server.test']) {
    connections = 0
    const client = createClient({ baseUrl, apiKey: 'adit_key', fetch: send })
    await assert.rejects(client.workspace.read(), /rejected the connection with 407/)
    assert.equal(connections, 1, baseUrl)
  }
})

test('the certificate of a proxy with TLS is for the proxy, not for the server', async (t) => {
  const files = makeCertificate(t, 'DNS:localhost')
  if (!files) return t.skip('openssl is not installed')
  const [key, cert] = [readFileSync(files.key), readFileSync(files.certificate)]
  const certificates = getCACertificates()
  atEnd(t, () => setDefaultCACertificates(certificates))
  setDefaultCACertificates([String(cert)])
  const server = createTlsServer({ key, cert }, (socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end(REJECTION))
  })
  const port = await listen(t, server)
  const fetchVia = (hostname: string, url: string) => {
    const value = `https://${hostname}:${port}`
    return createFetch(parseProxies({ HTTPS_PROXY: value, HTTP_PROXY: value }))(url)
  }
  for (const scheme of ['http', 'https']) {
    await assert.rejects(fetchVia('localhost', `${scheme}://server.test`), /rejected .* with 407/)
    await assert.rejects(fetchVia('127.0.0.1', `${scheme}://localhost`), /does not match certificate/)
  }
})
