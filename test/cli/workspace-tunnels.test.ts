// `adit tunnels`, `adit names` and `adit edges` as processes, with a real edge and tunnel client.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { revoke } from '../../src/server/domain/keys/lifecycle.ts'
import { setUrl } from '../../src/server/domain/tunnels/edges.ts'
import { startEdge } from '../edge/names/two-edges.ts'
import { addWorkspace, operator, serve, type TestServer } from '../support/api/server.ts'
import type { Test } from '../support/cleanup.ts'
import { createFolder } from '../support/databases/create.ts'
import { addTunnelEdge, tunnelOf } from '../support/edges/open-tunnels.ts'
import { fetchHost, openTunnel, startLocal } from '../support/edges/tunnels.ts'
import { listen } from '../support/network/listen.ts'
import { pluck } from '../support/pluck.ts'
import { run } from '../support/processes/process.ts'
import { until } from '../support/until.ts'

/** Runs commands with a key of the server. */
function createUser(t: Test, { url, key }: Pick<TestServer, 'url' | 'key'>) {
  const folder = createFolder(t)
  const env = { XDG_CONFIG_HOME: folder, HOME: folder, ADIT_URL: url, ADIT_API_KEY: key.token }
  return (...args: string[]) => run(t, args, env)
}

const parse = ({ stdout }: { stdout: string }) => JSON.parse(stdout)

async function startOpen(t: Test, env: Record<string, string> = {}) {
  const server = await serve(t, { engine: 'sqlite', env })
  const edge = await startEdge(t, server, 'fra-1')
  await setUrl(server.services, operator, edge.id, edge.url)
  const local = await startLocal(t)
  const tunnel = await openTunnel(t, { edge, key: server.key.token, port: local.port, name: 'app' })
  const adit = createUser(t, server)
  await until('it is listed', async () => parse(await adit('tunnels', 'list', '--json')).length === 1)
  return { server, edge, tunnel, adit }
}

test('variant A: a tunnel is listed, shown and closed, and when the command exits no edge has it', async (t) => {
  const { edge, tunnel, adit } = await startOpen(t)
  const [listed] = parse(await adit('tunnels', 'list', '--json'))
  assert.deepEqual(
    [listed.name, listed.url, listed.edges],
    ['app', tunnel.url, [{ id: edge.id, name: 'fra-1' }]],
  )
  const { id } = listed
  const table = await adit('tunnels', 'list', '--name', 'app')
  assert.deepEqual([table.code, table.stderr], [0, ''])
  assert.match(table.stdout, /^ID +URL +KEY +CLIENT +EDGES +OPENED +REQUESTS\n/)
  assert.ok(table.stdout.includes(`${id}  ${tunnel.url}`), table.stdout)
  assert.equal((await adit('tunnels', 'list', '--name', 'other')).stdout, 'No open tunnels.\n')
  assert.equal((await adit('tunnels', 'list', '--name', 'Not.A.Label')).code, 2)

  const shown = await adit('tunnels', 'show', id)
  assert.equal(shown.code, 0, shown.stderr)
  assert.match(
    shown.stdout,
    new RegExp(
      `^app \\(${id}\\)\n {2}URL +${tunnel.url}\n {2}Type +http\n {2}Edges +fra-1\n {2}API key +first \\(tok_`,
    ),
  )
  assert.match(
    shown.stdout,
    /\n {2}Access +open\n {2}Opened +\S+\n {2}Requests +\d+, in progress: 0\n {2}Traffic /,
  )
  assert.equal(parse(await adit('tunnels', 'show', id, '--json')).id, id)

  const unsure = await adit('tunnels', 'close', id)
  assert.deepEqual([unsure.code, unsure.stdout], [2, ''])
  assert.match(unsure.stderr, /aborts requests in progress\. Confirm with --yes\./)
  assert.equal((await fetchHost(edge, tunnel.host)).status, 200)
  const closed = await adit('tunnels', 'close', id, '--yes', '--json')
  assert.equal((await fetchHost(edge, tunnel.host)).status, 404)
  assert.deepEqual([closed.code, parse(closed), closed.stderr], [0, { id, closed: true }, ''])
  const { code, stderr } = await tunnel.ended
  assert.equal(code, 1)
  assert.match(stderr, /closed this tunnel/)

  for (const verb of ['show', 'close']) {
    const gone = await adit('tunnels', verb, id, ...(verb === 'close' ? ['--yes'] : []))
    assert.deepEqual([gone.code, gone.stdout], [1, ''])
    assert.match(gone.stderr, /No open tunnel tun_\w+\. Run `adit tunnels list` to list tunnels\./)
  }
})

test('a tunnel is shown and closed by its name', async (t) => {
  const { edge, tunnel, adit } = await startOpen(t)
  const [{ id }] = parse(await adit('tunnels', 'list', '--json'))
  assert.equal(parse(await adit('tunnels', 'show', 'app', '--json')).id, id)
  const unknown = await adit('tunnels', 'show', 'apps')
  assert.deepEqual([unknown.code, unknown.stdout], [1, ''])
  assert.match(unknown.stderr, /No open tunnel apps\. Run `adit tunnels list` to list tunnels\./)
  const closed = await adit('tunnels', 'close', 'app', '--yes')
  assert.deepEqual([closed.code, closed.stdout, closed.stderr], [0, `Closed ${id}.\n`, ''])
  assert.equal((await fetchHost(edge, tunnel.host)).status, 404)
})

test('for a name that several tunnels have, their ids are listed, and none is closed', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const edge = await addTunnelEdge(server, 'fra-1')
  await edge.sync({ changed: [1, 2].map(() => tunnelOf(server, { name: 'app', pool: true })) })
  const adit = createUser(t, server)
  const tunnels: { id: string }[] = parse(await adit('tunnels', 'list', '--json'))
  const ids = pluck(tunnels, 'id')
  assert.equal(ids.length, 2)
  for (const args of [
    ['show', 'app'],
    ['close', 'app', '--yes'],
  ]) {
    const { code, stdout, stderr } = await adit('tunnels', ...args)
    assert.deepEqual([code, stdout], [2, ''])
    assert.ok(
      stderr.includes(`Several open tunnels have the name app: ${ids.join(', ')}. Use one of`),
      stderr,
    )
  }
  assert.equal(parse(await adit('tunnels', 'show', ids[1] as string, '--json')).id, ids[1])
  assert.equal(parse(await adit('tunnels', 'list', '--json')).length, 2)
})

test('names and edges are listed', async (t) => {
  const { edge, adit } = await startOpen(t)
  const [name] = parse(await adit('names', 'list', '--json'))
  assert.deepEqual([name.name, name.host, name.reserved, name.open], ['app', 'app.acme.localhost', false, 1])
  const names = await adit('names', 'list')
  assert.match(
    names.stdout,
    /^NAME +HOST +RESERVED +OPEN +ACCESS +LAST OPENED\napp +app\.acme\.localhost +no +1 +open +\d{4}-/,
  )
  const [listed] = parse(await adit('edges', 'list', '--json'))
  assert.deepEqual(
    [listed.name, listed.url, listed.isConnected, listed.tunnels],
    ['fra-1', edge.url, true, 1],
  )
  const edges = await adit('edges', 'list')
  assert.match(
    edges.stdout,
    /^NAME +URL +STATE +VERSION +LAST REPORT +TUNNELS\nfra-1 +http:\S+ +connected +adit \S+ +\S+ +1\n$/,
  )
})

test('variant B: tunnels are listed, and closing one refers to the dashboard', async (t) => {
  const { server, edge, tunnel, adit } = await startOpen(t, { ADIT_API_VARIANT: 'B' })
  const [{ id }] = parse(await adit('tunnels', 'list', '--json'))
  const { code, stdout, stderr } = await adit('tunnels', 'close', id, '--yes')
  assert.deepEqual([code, stdout], [1, ''])
  assert.ok(stderr.endsWith(`Admins and owners can do this in the dashboard: ${server.url}\n`), stderr)
  const json = await adit('tunnels', 'close', id, '--yes', '--json')
  assert.deepEqual([json.code, json.stdout, JSON.parse(json.stderr).error], [1, '', 'forbidden'])
  assert.equal((await fetchHost(edge, tunnel.host)).status, 200)
})

test('another workspace has no such tunnel, and a revoked key is exit 4', async (t) => {
  const { server } = await startOpen(t)
  const [tunnel] = parse(await createUser(t, server)('tunnels', 'list', '--json'))
  const elsewhere = await addWorkspace(server, 'elsewhere')
  const adit = createUser(t, { url: server.url, key: elsewhere.key })
  assert.equal((await adit('tunnels', 'list', '--json')).stdout, '[]\n')
  const [foreign, unknown] = [
    await adit('tunnels', 'close', tunnel.id, '--yes'),
    await adit('tunnels', 'close', 'tun_0000000000', '--yes'),
  ]
  assert.equal(foreign.code, 1)
  assert.equal(foreign.stderr.replace(tunnel.id, 'tun_0000000000'), unknown.stderr)
  await revoke(elsewhere.ctx, elsewhere.key.id)
  for (const args of [
    ['tunnels', 'list'],
    ['tunnels', 'show', 'x'],
    ['tunnels', 'close', 'x', '--yes'],
    ['names', 'list'],
    ['edges', 'list'],
  ])
    assert.equal((await adit(...args)).code, 4, args.join(' '))
})

test('all pages are listed', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const edge = await addTunnelEdge(server, 'fra-1')
  const names = Array.from({ length: 450 }, (_, index) => `app-${index}`).toSorted()
  await edge.sync({ changed: names.map((name) => tunnelOf(server, { name })) })
  const adit = createUser(t, server)
  for (const list of ['tunnels', 'names']) {
    const items = parse(await adit(list, 'list', '--json'))
    assert.deepEqual(
      items.map(({ name }: { name: string }) => name),
      names,
    )
  }
})

test('a server without these routes is named as the cause', async (t) => {
  const earlier = createServer((_request, response) => {
    response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":"not_found"}')
  })
  const url = `http://127.0.0.1:${await listen(t, earlier)}`
  const { key } = await serve(t, { engine: 'sqlite' })
  const { code, stderr } = await createUser(t, { url, key })('tunnels', 'list', '--json')
  assert.deepEqual([code, JSON.parse(stderr).error], [1, 'not_supported'])
})
