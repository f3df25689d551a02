// `adit tunnel` without --edge: the control plane names the edge.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { toEdgeUrl } from '../../../src/tunnel-client/edge-url.ts'
import { atEnd } from '../../support/cleanup.ts'
import { createFolder } from '../../support/databases/create.ts'
import { fetchHost, newKey, startLocal, startPlane, startTunnelEdge } from '../../support/edges/tunnels.ts'
import { assertFailed } from '../../support/processes/commands.ts'
import { run, startProcess } from '../../support/processes/process.ts'

test('a tunnel opens at the edge whose URL the operator has set, with no flag', async (t) => {
  const plane = await startPlane(t, ['acme'])
  const edge = await startTunnelEdge(t, { plane })
  const { port } = await startLocal(t)
  const home = createFolder(t)
  const env = { ADIT_URL: plane.url, ADIT_API_KEY: await newKey(plane, 'acme'), HOME: home }
  const [{ id, name, url }] = JSON.parse(await plane.admin('edge', 'list', '--json'))
  assert.equal(url, null)
  assert.equal(await plane.admin('edge', 'set-url', id, edge.url), `Set the URL of ${id} to ${edge.url}.`)
  assert.match(await plane.admin('edge', 'list'), new RegExp(`${name} +default +${edge.url}`))

  const tunnel = startProcess(t, ['tunnel', String(port), '--name', 'app'], env)
  const [opened] = await tunnel.waitFor(/^http:\/\/\S+$/m)
  assert.equal((await fetchHost(edge, new URL(opened).host, { path: '/' })).status, 200)

  // A request would return to the edge, and be sent to the tunnel again.
  const { port: edgePort } = new URL(edge.url)
  for (const target of [edgePort, edge.url, `https://127.0.0.1:${edgePort}`]) {
    const loop = await run(t, ['tunnel', target, '--name', 'loop'], env)
    assertFailed(loop, 2, /The target \S+ is the edge itself\. Name the port of your app, e\.g\. 3000\./)
  }

  // The key of a profile is for its own server.
  const own = { HOME: home, XDG_CONFIG_HOME: home }
  const login = await run(t, ['login', '--url', plane.url], own, `${env.ADIT_API_KEY}\n`)
  assert.equal(login.code, 0, login.stderr)
  const other = await run(t, ['tunnel', '3000'], { ...own, ADIT_URL: 'http://127.0.0.1:9' })
  assertFailed(other, 2, /The API key of profile "default" is for http\S+, not for http:\/\/127\.0\.0\.1:9\./)

  const atEdge = await run(t, ['login', edge.url], own, `${env.ADIT_API_KEY}\n`)
  assert.equal(atEdge.code, 1)
  assert.ok(
    atEdge.stderr.includes(
      `${edge.url} is an edge. Sign in to its server, at the URL of the dashboard, e.g. http://`,
    ),
    atEdge.stderr,
  )

  for (const args of [[id], [id, edge.url, '--remove']])
    await assert.rejects(plane.admin('edge', 'set-url', ...args), /Expected either a URL or --remove\./)
  assert.equal(await plane.admin('edge', 'set-url', id, '--remove'), `Removed the URL of ${id}.`)
})

test('a server elsewhere whose tunnel domain is localhost does not get the key sent to this machine', async (t) => {
  const plane = await startPlane(t, ['acme'])
  const local = await startLocal(t)
  // As a forward proxy, it is the only one that knows adit.example.com.
  const proxy = createServer((request, response) => {
    const { authorization = '' } = request.headers
    const { pathname } = new URL(request.url ?? '')
    fetch(plane.url + pathname, { headers: { authorization } }).then(async (reply) =>
      response.writeHead(reply.status, { 'content-type': 'application/json' }).end(await reply.text()),
    )
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  atEnd(t, () => proxy.close())
  const { code, stderr } = await run(t, ['tunnel', String(local.port)], {
    ADIT_URL: 'http://adit.example.com',
    ADIT_API_KEY: await newKey(plane, 'acme'),
    HTTP_PROXY: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
  })
  assert.equal(code, 1)
  assert.match(
    stderr,
    /names no edge, .* is localhost\. Ask its operator .* `adit admin edge set-url`\. To use another edge, pass --edge\.\n$/,
  )
})

test('the URL that a server names is rejected if it would send the API key without encryption', () => {
  const find = (
    url: string | null,
    controlPlane = 'https://adit.example.com',
    tunnelDomain = 'acme.example.com',
  ) => toEdgeUrl({ url, tunnelDomain }, controlPlane).edge
  assert.equal(find('https://edge.example.com/'), 'https://edge.example.com')
  assert.equal(find('http://127.0.0.1:8081'), 'http://127.0.0.1:8081')
  assert.equal(find('http://edge.internal', 'http://adit.internal'), 'http://edge.internal')
  assert.equal(find(null), 'https://acme.example.com')
  assert.equal(find(null, 'http://adit.internal:8080'), 'http://acme.example.com')
  assert.equal(find(null, 'http://127.0.0.1:8080', 'acme.localhost'), 'http://127.0.0.1:8081')
  assert.equal(find(null, 'http://[::1]:8080', 'localhost'), 'http://127.0.0.1:8081')
  for (const server of [
    'https://adit.example.com',
    'http://192.168.1.20:8080',
    'http://localhost.example.com',
  ])
    assert.throws(
      () => find(null, server, 'acme.localhost'),
      /names no edge, and its tunnel domain is localhost/,
    )
  for (const url of [
    'http://edge.example.com',
    'http://localhost.example.com',
    'http://127.0.0.1.example.com',
  ])
    assert.throws(() => find(url), /has no encryption, so your API key is not sent to it\./)
  for (const url of [
    'https://user:pass@edge.example.com',
    'https://edge.example.com/?a=1',
    'https://edge.example.com/#a',
    'file:///etc/passwd',
    `https://${'a'.repeat(400)}.example.com`,
    '',
    {} as string,
  ])
    assert.throws(() => find(url), /The server names an edge whose URL is invalid\./)
  assert.throws(() => find(null, 'https://adit.example.com', 'a@b.example.com'), /invalid/)
})
