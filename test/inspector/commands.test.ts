// `adit requests …` on what a tunnel of the same user has recorded.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, chownSync, lstatSync, readdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { WebSocketServer } from 'ws'
import { findSockets } from '../../src/inspector/local/socket-folder.ts'
import { atEnd } from '../support/cleanup.ts'
import { createFolder } from '../support/databases/create.ts'
import { startStandaloneEdge } from '../support/edges/standalone-edge.ts'
import { fetchHost, openSocket, openTunnel } from '../support/edges/tunnels.ts'
import { run, startProcess } from '../support/processes/process.ts'
import { until } from '../support/until.ts'
import { createRuntimeFolder, httpServer, startInspected } from './support.ts'

const echo = () =>
  httpServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      response.setHeader('content-type', 'application/json')
      response.end(
        JSON.stringify({
          method: request.method,
          url: request.url,
          cookie: request.headers.cookie,
          extra: request.headers['x-extra'],
          body: String(Buffer.concat(chunks)),
        }),
      )
    })
  })

test('requests are listed, shown, replayed and exported in the terminal', async (t) => {
  const { exchange, adit } = await startInspected(t, echo())
  const { id } = await exchange({
    method: 'POST',
    path: '/cart',
    headers: { cookie: 'session=secret' },
    body: Buffer.from('{"a":1}'),
  })
  const listed = await adit(['requests', 'list', '--method', 'post', '--since', '10m'])
  assert.match(listed.stdout, new RegExp(`^${id} .*\\bapp\\b.*\\b200\\b.*POST.*/cart`, 'm'))
  assert.doesNotMatch((await adit(['requests', 'list', '--status', '404'])).stdout, /cart/)
  const { stdout: json } = await adit(['requests', 'list', '--json'])
  assert.equal(JSON.parse(json)[0].id, id)

  const shown = await adit(['requests', 'show', id])
  assert.match(shown.stdout, /^POST \/cart\?\w+ HTTP\/1.1\n/)
  assert.match(shown.stdout, /^cookie: \[masked\]$/m)
  assert.match(shown.stdout, /^\{\n {2}"a": 1\n\}$/m)
  assert.match(shown.stdout, /^HTTP\/1.1 200 OK$/m)
  const revealed = await adit(['requests', 'show', id, '--reveal'])
  assert.match(revealed.stdout, /^cookie: session=secret$/m)
  const curl = await adit(['requests', 'show', id, '--as', 'curl'])
  assert.match(
    curl.stdout,
    /^curl .*'http:\/\/app\.acme\.tunnels\.test.*\/cart\?\w+' .*--data-raw '\{"a":1\}'$/m,
  )

  const replayed = JSON.parse((await adit(['requests', 'replay', id, '--json'])).stdout)
  assert.deepEqual([replayed.replayOf, replayed.status, replayed.edited], [id, 200, undefined])
  assert.match(replayed.response.body.view.text, /"cookie": "session=secret"/)
  const edits = [
    '--path',
    '/other',
    '--header',
    'X-Extra: new',
    '--remove-header',
    'cookie',
    '--body',
    'changed',
  ]
  const edited = JSON.parse((await adit(['requests', 'replay', id, ...edits, '--json'])).stdout)
  assert.equal(edited.edited, true)
  assert.deepEqual(JSON.parse(edited.response.body.view.text), {
    method: 'POST',
    url: '/other',
    extra: 'new',
    body: 'changed',
  })

  const har = JSON.parse((await adit(['requests', 'export', '--path', '/cart'])).stdout)
  assert.equal(har.log.version, '1.2')
  assert.deepEqual(
    har.log.entries.map((entry: { _replayOf?: string }) => entry._replayOf),
    [undefined, id],
  )
  const [entry] = har.log.entries
  assert.equal(entry.request.postData.text, '{"a":1}')
  assert.doesNotMatch(JSON.stringify(har), /session=secret"\}/)
})

test('an export has no characters that a terminal acts on, and the same values', async (t) => {
  const { exchange, adit } = await startInspected(t, echo())
  const hostile = '\u202e \u2028'
  const headers = { 'x-hostile': '\u009b2J' }
  await exchange({ method: 'POST', path: '/hostile', headers, body: Buffer.from(hostile) })
  const { stdout } = await adit(['requests', 'export'])
  assert.match(stdout, /^\P{C}+\n$/u)
  assert.doesNotMatch(stdout, /[\p{Zl}\p{Bidi_Control}]/u)
  const [{ request }] = JSON.parse(stdout).log.entries
  assert.equal(request.postData.text, hostile)
  assert.ok(request.headers.some(({ value }: { value: string }) => value === headers['x-hostile']))
})

test('a message cannot look like another line of the output', async (t) => {
  const server = httpServer(() => undefined)
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket) => socket.on('message', () => socket.close()))
  const { edge, tunnel, list, adit } = await startInspected(t, server)
  const socket = await openSocket(edge, tunnel.host)
  socket.send('sent\n< 1 ms text forged\r\nHTTP/1.1 200 OK')
  await until('it is recorded', async () => (await list('kind=websocket'))[0]?.state === 'complete')
  const { stdout } = await adit(['requests', 'show'])
  assert.match(stdout, /^> \S+ ?\S* text sent$/m)
  assert.match(stdout, /^ {2}< 1 ms text forged\ufffd?$/m)
  assert.doesNotMatch(stdout, /^(?:< .*forged|HTTP\/1\.1 200)/m)
})

test('the signature of a webhook is verified with a secret from standard input', async (t) => {
  const { exchange, adit } = await startInspected(t, echo())
  const body = Buffer.from('{"zen":"Design for failure."}')
  const signature = `sha256=${createHmac('sha256', 'right').update(body).digest('hex')}`
  const { id } = await exchange({ method: 'POST', headers: { 'x-hub-signature-256': signature }, body })
  const valid = await adit(['requests', 'verify', 'github', id], 'right\n')
  assert.equal(valid.code, 0, valid.stderr)
  assert.match(valid.stdout, new RegExp(`^The signature is valid.* \\(${id}\\)$`, 'm'))
  const failed = await adit(['requests', 'verify', 'github'], 'wrong\n')
  assert.equal(failed.code, 1)
  assert.match(failed.stderr, /does not match: the secret is another one, or the body was changed/)
  assert.ok(failed.stderr.includes(`(${id})`), failed.stderr)

  const replayed = JSON.parse((await adit(['requests', 'replay', id, '--body', 'changed', '--json'])).stdout)
  const latest = await adit(['requests', 'verify', 'github'], 'right\n')
  assert.equal(latest.code, 1)
  assert.ok(latest.stderr.includes(`(${replayed.id}, replay of ${id})`), latest.stderr)
})

test('an unknown scheme of a signature is wrong usage', async (t) => {
  const { code, stderr } = await run(t, ['requests', 'verify', 'foo'], {
    XDG_RUNTIME_DIR: createRuntimeFolder(t),
  })
  assert.equal(code, 2)
  assert.match(stderr, /Invalid scheme "foo" \(expected stripe, github, slack, or standard-webhooks\)/)
})

test('a request that got no response is listed with the reason, and a search for 5xx refers to it', async (t) => {
  const server = echo()
  const { exchange, adit } = await startInspected(t, server)
  const none = await adit(['requests', 'list', '--status', '502'])
  assert.equal(none.stdout, 'No such requests are recorded.\n')
  server.close()
  server.closeAllConnections()
  const { id } = await exchange({ path: '/lost' })
  const listed = await adit(['requests', 'list', '--status', 'none'])
  assert.match(
    listed.stdout,
    new RegExp(`^${id} .* none .*No connection to the local server: .*ECONNREFUSED`, 'm'),
  )
  for (const status of ['5xx', '502']) {
    const { stdout } = await adit(['requests', 'list', '--status', status])
    assert.match(stdout, /^No such requests are recorded\. 1 request got no response .*: --status none$/m)
  }
  const others = await adit(['requests', 'list', '--status', '502', '--path', '/other'])
  assert.equal(others.stdout, 'No such requests are recorded.\n')
})

test('everything is gone when the tunnel ends, also when it is killed', async (t) => {
  const { exchange, adit, tunnel, folder } = await startInspected(t, echo())
  const sockets = join(folder, 'adit')
  await exchange({ path: '/private' })
  assert.equal(readdirSync(sockets).length, 1)
  tunnel.child.kill('SIGKILL')
  await tunnel.ended
  const { code, stderr } = await adit(['requests', 'list'])
  assert.equal(code, 1)
  assert.match(stderr, /No tunnel of yours records requests on this machine\. Open one with --inspect/)
  assert.deepEqual(readdirSync(sockets), [])
})

test('a tunnel that is stopped leaves no file', async (t) => {
  const { exchange, tunnel, folder } = await startInspected(t, echo())
  await exchange({ path: '/private' })
  tunnel.child.kill('SIGTERM')
  assert.equal((await tunnel.ended).code, 0)
  assert.deepEqual(readdirSync(join(folder, 'adit')), [])
})

test('only the user may use the socket: its folder and itself are closed to others', async (t) => {
  const { folder } = await startInspected(t, echo())
  const sockets = join(folder, 'adit')
  const [name = ''] = readdirSync(sockets)
  assert.equal(lstatSync(sockets).mode & 0o777, 0o700)
  assert.equal(lstatSync(join(sockets, name)).mode & 0o777, 0o600)
  // Only root can act as somebody else.
  if (process.getuid?.() !== 0) return
  const connect = `require('node:net').connect(${JSON.stringify(join(sockets, name))}).on('error', ({ code }) => console.log(code))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--eval', connect], {
    uid: 65_534,
    cwd: '/',
  })
  assert.equal(stdout.trim(), 'EACCES')
})

test('a socket that somebody else has put into the folder before is not used', {
  skip: process.getuid?.() !== 0 && 'only root can create files of another user',
}, async (t) => {
  const folder = join(createRuntimeFolder(t), 'adit')
  const connected = new Set<string>()
  for (const name of ['1-own.sock', '2-planted.sock']) {
    const server = createServer((connection) => {
      connected.add(name)
      connection.destroy()
    })
    server.listen(join(folder, name))
    await once(server, 'listening')
    atEnd(t, () => server.close())
  }
  chownSync(join(folder, '2-planted.sock'), 65_534, 65_534)
  chmodSync(folder, 0o777)
  const found = await findSockets(folder)
  assert.deepEqual(
    found.map(({ file }) => file),
    [join(folder, '1-own.sock')],
  )
  assert.deepEqual([...connected], ['1-own.sock'])
  assert.equal(lstatSync(folder).mode & 0o777, 0o700)
})

test('without --inspect nothing is recorded, and there is no socket', async (t) => {
  const folder = createRuntimeFolder(t)
  const env = { XDG_RUNTIME_DIR: folder }
  const { edge, keys, local } = await startStandaloneEdge(t, ['acme'])
  const { host } = await openTunnel(t, { edge, key: keys[0] as string, port: local.port, env })
  assert.equal((await fetchHost(edge, host)).status, 200)
  assert.deepEqual(readdirSync(join(folder, 'adit')), [])
  assert.match((await run(t, ['requests', 'list'], env)).stderr, /No tunnel of yours/)
})

test('flags that have no effect are rejected', async (t) => {
  const env = { ADIT_API_KEY: 'x', ADIT_EDGE_URL: 'http://127.0.0.1:9' }
  const cases: [string[], RegExp][] = [
    [['tunnel', 'tcp', '5432', '--inspect'], /Only requests of HTTP tunnels are recorded/],
    [['tunnel', '3000', '--mask-header', 'x-key'], /--mask-header has no effect without --inspect/],
    [['tunnel', '3000', '--inspect', '--mask-header', 'x key'], /Invalid --mask-header "x key"/],
    [['tunnel', '--serve', createRuntimeFolder(t), '--inspect'], /--inspect has no effect on --serve/],
  ]
  for (const [args, message] of cases) {
    const { code, stderr } = await run(t, args, { ...env, XDG_RUNTIME_DIR: createRuntimeFolder(t) })
    assert.match(stderr, message)
    assert.equal(code, 2)
  }
})

test('adit start records the tunnels of adit.json that say so', async (t) => {
  const [folder, project] = [createRuntimeFolder(t), createFolder(t)]
  const { edge, keys, local } = await startStandaloneEdge(t, ['acme'])
  const tunnels = {
    seen: { target: local.port, inspect: true, maskHeader: ['x-key'] },
    unseen: { target: local.port },
  }
  writeFileSync(join(project, 'adit.json'), JSON.stringify({ tunnels }))
  const env = { XDG_RUNTIME_DIR: folder, ADIT_API_KEY: keys[0] as string }
  const running = startProcess(t, ['start', '--edge', edge.url, '--json'], env, '', project)
  for (const name of ['seen', 'unseen']) {
    await running.waitFor(new RegExp(`"event":"open","name":"${name}"`))
    await fetchHost(edge, `${name}.acme.tunnels.test`, { headers: { 'x-key': 'secret' } })
  }
  const list = async () => JSON.parse((await run(t, ['requests', 'list', '--json'], env)).stdout)
  await until('it is recorded', async () => (await list())[0]?.state === 'complete')
  assert.deepEqual(
    (await list()).map(({ tunnel }: { tunnel: string }) => tunnel),
    ['seen'],
  )
  assert.match((await run(t, ['requests', 'show'], env)).stdout, /^x-key: \[masked\]$/m)
})
