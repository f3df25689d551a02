// Commands against a server or an edge that is not what it seems: what they print, and how much they read.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { test } from 'node:test'
import { createGzip } from 'node:zlib'
import { createControlPlane } from '../../src/edge-sdk/index.ts'
import type { TunnelEvent } from '../../src/tunnel-protocol/protocol.ts'
import type { Test } from '../support/cleanup.ts'
import { OPENED, startMinimalEdge } from '../support/edges/minimal-edge.ts'
import { listen } from '../support/network/listen.ts'
import { assertFailed } from '../support/processes/commands.ts'
import { run, startProcess } from '../support/processes/process.ts'
import { until } from '../support/until.ts'

const FORGED = 'no.\nadit: Signed in.\r\u001b[2Kadit: forged\u0085\u2028adit: forged\u202e'

const startHttp = async (t: Test, respond: RequestListener) =>
  `http://127.0.0.1:${await listen(t, createServer(respond))}`

/** One line of this program, without characters that move the cursor. */
function assertOneLine(text: string): void {
  assert.equal(text.split(/[\n\r\u0085\u2028\u2029]/).length, 2, JSON.stringify(text))
  assert.ok(text.endsWith('\n'))
  assert.doesNotMatch(text, /[^\P{Cc}\n]|\p{Bidi_Control}/u)
}

test('messages of a server stay on one line, for every error', async (t) => {
  let status = 0
  let body: object = {}
  const url = await startHttp(t, (_request, response) => {
    const headers = { 'content-type': 'application/json', location: 'http://x/?\u0085adit:' }
    response.writeHead(status, headers).end(JSON.stringify(body))
  })
  const env = { ADIT_URL: url, ADIT_API_KEY: 'adit_key' }
  for (const [code, error] of [
    [401, 'unauthorized'],
    [403, 'forbidden'],
    [409, 'conflict'],
    [400, 'invalid_request'],
  ] as const) {
    status = code
    body = { error, message: FORGED, details: [{ path: FORGED, message: FORGED }] }
    for (const [args, input] of [
      [['workspace'], ''],
      [['keys', 'create', '--label', 'x'], ''],
      [['login', '--url', url], 'adit_key\n'],
    ] as const) {
      const { code, stdout, stderr } = await run(t, [...args], env, input)
      assert.notEqual(code, 0, `${args} ${error}`)
      assert.equal(stdout, '')
      assertOneLine(stderr)
      const json = await run(t, [...args, '--json'], env, input)
      assertOneLine(json.stderr)
      assert.doesNotMatch(JSON.parse(json.stderr).message, /\p{Cc}/u)
    }
  }
  status = 302
  const redirected = await run(t, ['login', '--url', url], env, 'adit_key\n')
  assertOneLine(redirected.stderr)
  status = 400
  for (const hostile of [{ details: [null] }, { details: [{ path: {}, message: { toString: 1 } }] }]) {
    body = { error: 'invalid_request', ...hostile }
    const result = await run(t, ['workspace'], env)
    assertFailed(result, 1, /is not from an Adit server\. Check the server URL\.\n$/)
  }
})

test('login saves no workspace whose fields are not text', async (t) => {
  let body: object = {}
  const url = await startHttp(t, (_request, response) => void response.end(JSON.stringify(body)))
  for (const hostile of [
    { slug: 1, name: 'x' },
    { slug: 'x', name: { toString: 1 } },
    { slug: null, name: null },
  ]) {
    body = hostile
    assertFailed(await run(t, ['login', '--url', url], {}, 'adit_key\n'), 1, /is not an Adit server/)
  }
})

test('messages of an edge stay on one line, and events with control characters are ignored', async (t) => {
  for (const [status, body] of [
    [403, { error: 'not_provisioned', message: FORGED }],
    [409, { error: `x\n${FORGED}`, message: FORGED }],
    [401, { error: 'unauthorized', message: FORGED }],
    [403, { error: 'not_provisioned', message: 'x'.repeat(60_000) }],
    [302, {}],
  ] as const) {
    const edge = await startMinimalEdge(t, {
      respond: (_request, response) =>
        void response.writeHead(status, { location: 'http://x/\u0085' }).end(JSON.stringify(body)),
    })
    const env = { ADIT_API_KEY: 'adit_key', ADIT_EDGE_URL: edge.url }
    for (const flags of [[], ['--json']]) {
      const { code, stdout, stderr } = await run(t, ['tunnel', '3000', ...flags], env)
      assert.notEqual(code, 0)
      assert.equal(stdout, '')
      assertOneLine(stderr)
      assert.ok(stderr.length < 2_000, 'a message of any length')
    }
  }
  const edge = await startMinimalEdge(t)
  const tunnel = startProcess(t, ['tunnel', '3000'], { ADIT_API_KEY: 'adit_key', ADIT_EDGE_URL: edge.url })
  const side = await edge.connection()
  await tunnel.waitFor(/Forwarding to/, 'stderr')
  for (const message of [FORGED, 'a\u2028adit: forged'])
    for (const event of ['notice', 'close'] as const)
      side.send({ event, reason: 'x', message } as unknown as TunnelEvent)
  const transfer = { bytesIn: 1, bytesOut: 2, ms: 1 }
  side.send({ event: 'request', method: 'GET', path: '/\nadit: forged', status: 200, ...transfer })
  side.send({ event: 'close', reason: 'requested', message: 'Closed by Ann.' })
  const { stderr } = await tunnel.ended
  assert.match(stderr, /Closed by Ann\.\n$/)
  assert.ok(!stderr.includes('forged'), stderr)
})

test('the URL of a tunnel is printed only if it is one', async (t) => {
  const hostile = [
    'file:///etc/passwd',
    'javascript:alert(1)',
    'http://x.test/$(reboot)',
    'http://x.test/ http://evil.test',
    'http://user@evil.test',
    'https://x.test/?a=b',
    '-o ProxyCommand=x',
    '',
    `http://${'a'.repeat(300)}.test`,
    'http://x\u202etest',
  ]
  const edge = await startMinimalEdge(t, {
    onConnect(side) {
      for (const url of hostile) side.send({ event: 'open', ...OPENED, url })
      side.send({ event: 'notice', message: 'That was all.' })
      side.send({ event: 'open', ...OPENED })
    },
  })
  for (const flags of [[], ['--json']]) {
    const env = { ADIT_API_KEY: 'adit_key', ADIT_EDGE_URL: edge.url }
    const tunnel = startProcess(t, ['tunnel', '3000', ...flags], env)
    const [printed] = await tunnel.waitFor(/.*http:.*/)
    assert.ok(flags.length > 0 ? JSON.parse(printed).url === OPENED.url : printed === OPENED.url, printed)
    const { stdout, stderr } = await tunnel.stop()
    assert.match(stdout + stderr, /That was all/)
    assert.doesNotMatch(stdout, /evil|passwd|alert|reboot|Proxy|\?|aaaa|\u202e/)
  }
})

/** Sends 300 MB of spaces as a few hundred kilobytes. */
async function startBomb(t: Test) {
  const chunk = Buffer.alloc(1_000_000, ' ')
  const url = await startHttp(t, (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
    const gzip = createGzip()
    let bytes = 0
    gzip.pipe(response)
    const write = () => {
      if (response.destroyed || bytes >= 300_000_000) return gzip.end()
      bytes += chunk.length
      if (gzip.write(chunk)) setImmediate(write)
      else gzip.once('drain', write)
    }
    response.on('close', () => gzip.destroy())
    write()
  })
  return url
}

test('a compressed response that expands to 300 MB is not read', async (t) => {
  const url = await startBomb(t)
  const env = { ADIT_URL: url, ADIT_API_KEY: 'adit_key', HOME: '/nowhere' }
  for (const args of [['workspace'], ['keys', 'list'], ['usage']]) {
    const result = await runMeasured(t, args, env)
    assertFailed(result, 1, /The response is larger than 32 MiB\. Read long lists in pages/)
  }
  const controlPlane = createControlPlane({ url, credential: 'adit_edge_x' })
  await assert.rejects(controlPlane.verify('adit_key'), /sent a response that cannot be read: .* larger than/)
  const before = process.memoryUsage().rss
  await assert.rejects(controlPlane.findHost('x.test'), /larger than 16777216 bytes/)
  assert.ok(process.memoryUsage().rss - before < 200_000_000)
})

/** Runs a command, and fails if it takes more memory than is plausible. */
async function runMeasured(t: Test, args: string[], env: Record<string, string>) {
  const running = startProcess(t, args, env)
  let peak = 0
  let isDone = false
  const ended = running.ended.finally(() => {
    isDone = true
  })
  await until('it ends', () => {
    try {
      const [, kilobytes] =
        /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${running.child.pid}/status`, 'utf8')) ?? []
      peak = Math.max(peak, Number(kilobytes ?? 0))
    } catch {
      // It has exited, or there is no /proc.
    }
    return isDone
  })
  assert.ok(peak < 400_000, `${args.join(' ')} took ${peak} kB`)
  return ended
}
