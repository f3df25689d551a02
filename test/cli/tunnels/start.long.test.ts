// `adit start` and adit.json: several tunnels of a project, at an edge that the test controls.
import assert from 'node:assert/strict'
import { chownSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Test } from '../../support/cleanup.ts'
import { createFolder } from '../../support/databases/create.ts'
import { type EdgeSide, startMinimalEdge } from '../../support/edges/minimal-edge.ts'
import { assertFailed } from '../../support/processes/commands.ts'
import { freePort } from '../../support/processes/ports.ts'
import { startProcess } from '../../support/processes/process.ts'
import { atTerminal, hasTerminal, NO_TERMINAL } from '../../support/processes/terminal.ts'
import { until } from '../../support/until.ts'

const OTHER_USER = 12_345
const KEY = { ADIT_API_KEY: 'adit_key' }

function createProject(t: Test, content: unknown): string {
  const folder = createFolder(t)
  writeFileSync(join(folder, 'adit.json'), typeof content === 'string' ? content : JSON.stringify(content))
  return folder
}

const startEdge = (t: Test) =>
  startMinimalEdge(t, {
    onConnect(side) {
      const { name = '', type = 'http' } = side.request
      const host = `${name}.acme.tunnels.test`
      const access = { basicAuth: true, allowIp: true }
      const url = `http://${host}`
      side.send({ event: 'open', type, url, host, name, ...(side.request.access && { access }) })
    },
  })

const adit = (t: Test, folder: string, args: string[], env: Record<string, string> = {}) =>
  startProcess(t, args, { ...KEY, ADIT_EDGE_URL: 'http://127.0.0.1:9', HOME: folder, ...env }, '', folder)

const find = (connections: readonly EdgeSide[], name: string) =>
  connections.find((side) => side.request.name === name) as EdgeSide

const TUNNELS = {
  $schema: './docs/adit.schema.json',
  tunnels: {
    web: { target: 3000, basicAuth: 'ann', allowIp: ['203.0.113.0/24'], hostHeader: 'rewrite' },
    db: { target: '127.0.0.1:5432', type: 'tcp', pool: true },
  },
}

const TRANSFER = { bytesIn: 1, bytesOut: 2, ms: 1 }

test('start opens the tunnels of the file, shows them in a table, and their requests below', async (t) => {
  const edge = await startEdge(t)
  const folder = createProject(t, TUNNELS)
  const env = { ADIT_EDGE_URL: edge.url, ADIT_TUNNEL_BASIC_AUTH: 'ann:correct-horse' }
  const web = adit(t, folder, ['start', 'web', '--json'], env)
  await web.waitFor(/"event":"open","name":"web".*"target":"http:\/\/localhost:3000"/)
  const { access, hostHeader, target } = edge.connections[0]?.request ?? {}
  assert.deepEqual(access, {
    basicAuth: { user: 'ann', password: 'correct-horse' },
    allowIp: ['203.0.113.0/24'],
  })
  assert.deepEqual([hostHeader, target], ['rewrite', 'http://localhost:3000'])
  await web.stop('SIGKILL')

  const before = edge.connections.length
  const unused = await freePort()
  const plain = createProject(t, { tunnels: { web: { target: unused }, db: TUNNELS.tunnels.db } })
  const all = adit(t, plain, ['start'], { ADIT_EDGE_URL: edge.url })
  await all.waitFor(
    /^NAME +URL +TARGET +STATE\nweb +http:\/\/web\.acme\.tunnels\.test +http:\/\/localhost:\d+ +open\ndb +/m,
  )
  await all.waitFor(/^web {2}! The local server at http:\/\/localhost:\d+ cannot be reached: /m, 'stderr')
  const opened = edge.connections.slice(before)
  assert.equal(find(opened, 'db').request.pool, true)
  find(opened, 'web').send({ event: 'request', method: 'GET', path: '/a', status: 200, ...TRANSFER })
  await all.waitFor(/^web {2}\d\d:\d\d:\d\d {2}200 +1 ms {2}1 B in, 2 B out +GET {4}\/a$/m, 'stderr')
  find(opened, 'db').send({ event: 'close', reason: 'closed', message: 'The tunnel was closed by an admin.' })
  await all.waitFor(/^db +! The tunnel was closed by an admin\.$/m, 'stderr')
  all.child.kill('SIGTERM')
  await until('the client stops', () => find(opened, 'web').isGoingAway)
  find(opened, 'web').session.goAway()
  const { code, stderr } = await all.ended
  assert.equal(code, 1)
  assert.match(stderr, /adit: 1 of 2 tunnels failed; see above\./)
})

test('why a tunnel is rejected is said once for each, as text and as JSON', async (t) => {
  const edge = await startMinimalEdge(t, {
    respond: (_request, response) =>
      void response
        .writeHead(401)
        .end(JSON.stringify({ error: 'unauthorized', message: 'Unknown API key.' })),
  })
  const folder = createProject(t, { tunnels: { web: { target: 3000 }, api: { target: 4000 } } })
  for (const flags of [[], ['--json']]) {
    const env = { ADIT_EDGE_URL: edge.url }
    const { code, stdout, stderr } = await adit(t, folder, ['start', ...flags], env).ended
    assert.equal(code, 4)
    assert.equal(`${stdout}${stderr}`.split('unknown API key.').length - 1, 2, `${stdout}${stderr}`)
    assert.match(stderr, /2 of 2 tunnels failed; see above\./)
  }
})

test('a file with a mistake or a secret is rejected with the path of the member', async (t) => {
  const tunnel = (more: object) => ({ tunnels: { web: { target: 3000, ...more } } })
  for (const [content, message] of [
    ['{', /adit\.json: invalid JSON/],
    [[], /the file must be an object/],
    [{ tunnels: {} }, /\/tunnels must have 1 to 20 tunnels/],
    [{ tunnels: { web: { target: 3000 } }, edge: 'x' }, /\/edge is unknown; expected \$schema, tunnels\./],
    [{ tunnels: { 'Not-A-Label': { target: 1 } } }, /\/tunnels\/Not-A-Label is not a valid tunnel name/],
    [tunnel({ taget: 1 }), /\/tunnels\/web\/taget is unknown; expected target, serve, type, basicAuth/],
    [tunnel({ password: 'hunter2' }), /\/tunnels\/web\/password is a secret, .* use `adit login`/],
    [
      tunnel({ basicAuth: 'ann:hunter2' }),
      /\/tunnels\/web\/basicAuth must be a user name without a password/,
    ],
    [tunnel({ target: 0 }), /\/tunnels\/web\/target/],
    [tunnel({ serve: 'public' }), /\/tunnels\/web needs a target or serve, not both/],
    [
      tunnel({ type: 'tcp', hostHeader: 'x' }),
      /is a TCP tunnel, which has no serve, basicAuth or hostHeader/,
    ],
    [tunnel({ insecure: true }), /\/tunnels\/web has insecure or ca, which are for targets with https/],
    [tunnel({ target: 'https://localhost:1', insecure: true, ca: 'x' }), /Use one of them/],
    [tunnel({ 'a\u001b[31m\n': 1 }), /\/tunnels\/web\/a\ufffd\[31m is unknown/],
    [
      tunnel({ target: 'abc' }),
      /\/tunnels\/web\/target: Invalid target "abc" .*"serve": "<folder>" in adit\.json/,
    ],
    [tunnel({ target: 'x:99999' }), /\/tunnels\/web\/target: Invalid port "99999"/],
    [
      tunnel({ target: 'https://localhost:1', ca: 'no.pem' }),
      /adit\.json: \/tunnels\/web\/ca: Cannot use ca \/\S+\/no\.pem: ENOENT/,
    ],
    [tunnel({ allowIp: ['x'] }), /\/tunnels\/web\/allowIp: Invalid address or network "x"/],
    [{ tunnels: { web: { serve: 'none' } } }, /\/web\/serve: There is no folder \/\S+\/none\. serve shares/],
    [
      { tunnels: { web: { serve: '.', hostHeader: 'x' } } },
      /\/tunnels\/web\/hostHeader: hostHeader has no effect on serve\./,
    ],
    [`${' '.repeat(65_536)}{}`, /is not used: it is larger than 65536 bytes/],
  ] as const) {
    const { code, stderr } = await adit(t, createProject(t, content), ['start', '--yes']).ended
    assert.equal(code, 2, stderr)
    assert.doesNotMatch(stderr, /--(ca|serve|allow-ip|host-header|insecure)/, 'start has no such flag')
    assert.match(stderr, message)
    assert.ok(!stderr.includes('hunter2') && !stderr.includes('\u001b'), stderr)
  }
  const { stderr } = await adit(t, createProject(t, TUNNELS), ['start', 'nope']).ended
  assert.match(stderr, /There is no tunnel "nope" \(expected web, db\)\./)
})

test('targets other than ports of this machine need a confirmation', async (t) => {
  for (const tunnel of [
    { target: '192.168.1.20:80' },
    { target: 'unix:/run/docker.sock' },
    { target: 'unix:./docker.localhost' },
    { target: 'localhost.example.com:80' },
    { target: 'https://intranet.example.com' },
    { serve: '.' },
  ]) {
    const folder = createProject(t, { tunnels: { web: tunnel } })
    for (const args of [['start'], ['tunnel']]) {
      const result = await adit(t, folder, args).ended
      assertFailed(result, 2, /publishes more than ports of this machine: web: .*\. Confirm with --yes\./)
    }
  }
  const edge = await startEdge(t)
  const folder = createProject(t, { tunnels: { web: { target: '192.168.1.20:80' } } })
  await adit(t, folder, ['start', '--yes'], { ADIT_EDGE_URL: edge.url }).waitFor(/192\.168\.1\.20:80 +open$/m)
})

test('tunnel takes the only tunnel of the file, or the one that --name says', async (t) => {
  const edge = await startEdge(t)
  const env = { ADIT_EDGE_URL: edge.url }
  const one = createProject(t, { tunnels: { web: { target: 3456, hostHeader: 'rewrite' } } })
  await adit(t, one, ['tunnel'], env).waitFor(/^Forwarding to http:\/\/localhost:3456\./m, 'stderr')
  assert.equal(edge.connections[0]?.request.hostHeader, 'rewrite')
  const two = createProject(t, { tunnels: { web: { target: 3000 }, api: { target: 4567 } } })
  const { code, stderr } = await adit(t, two, ['tunnel'], env).ended
  assert.equal(code, 2)
  assert.match(stderr, /adit\.json has the tunnels .*Choose one with --name/)
  await adit(t, two, ['tunnel', '--name', 'api'], env).waitFor(
    /^Forwarding to http:\/\/localhost:4567\./m,
    'stderr',
  )
})

test('only a file of the user counts, in the folder or above it up to the root of the repository', {
  skip: process.getuid?.() === 0 ? false : 'needs root, to change owners',
}, async (t) => {
  const start = (folder: string) => adit(t, folder, ['start', 'nope']).ended
  const found = /There is no tunnel "nope"/
  const missing = /There is no adit\.json in this folder or above it in its repository/
  const folder = createProject(t, TUNNELS)
  const inner = join(folder, 'a/b')
  mkdirSync(inner, { recursive: true })
  assert.match((await start(folder)).stderr, found)
  assert.match(
    (await start(inner)).stderr,
    missing,
    'without a repository, only the working directory counts',
  )
  mkdirSync(join(folder, '.git'))
  assert.match((await start(inner)).stderr, found)
  chownSync(join(folder, '.git'), OTHER_USER, OTHER_USER)
  assert.match((await start(inner)).stderr, missing)
  chownSync(join(folder, '.git'), 0, 0)
  chownSync(join(folder, 'a'), OTHER_USER, OTHER_USER)
  assert.match((await start(inner)).stderr, missing, 'a folder on the way belongs to another user')
  chownSync(join(folder, 'a'), 0, 0)
  chownSync(join(folder, 'adit.json'), OTHER_USER, OTHER_USER)
  assert.match((await start(inner)).stderr, /adit\.json is not used: it belongs to another user\./)
  renameSync(join(folder, 'adit.json'), join(folder, 'other.json'))
  symlinkSync(join(folder, 'other.json'), join(folder, 'adit.json'))
  assert.match((await start(folder)).stderr, /adit\.json is not used: it is a symbolic link\./)
})

test('on a terminal the table stays above the requests', {
  skip: hasTerminal ? false : NO_TERMINAL,
}, async (t) => {
  const edge = await startEdge(t)
  const folder = createProject(t, { tunnels: { web: { target: 3000 } } })
  mkdirSync(join(folder, '.git'))
  const terminal = atTerminal(t, ['start'], { ...KEY, ADIT_EDGE_URL: edge.url, HOME: folder }, 120, folder)
  const side = await edge.connection()
  await until('the table', () => terminal.output().includes('http://web.acme.tunnels.test'))
  assert.ok(terminal.output().includes('\u001b[4;40r'), 'lines scroll below the table')
  side.send({ event: 'request', method: 'GET', path: '/some/path', status: 200, ...TRANSFER })
  await terminal.reply('/some/path', '\u0003')
  await until('the client stops', () => side.isGoingAway)
  side.session.goAway()
  await terminal.ended
  assert.ok(terminal.output().includes('\u001b[r'), 'the whole screen scrolls again')
})
