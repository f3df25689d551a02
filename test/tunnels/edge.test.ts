// What an edge lets through, and what it refuses: names, hosts, headers, and tunnels whose ends come and go.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { pipenet } from 'pipenet'
import type { Test } from '../support/cleanup.ts'
import { createFolder } from '../support/databases.ts'
import { freePort } from '../support/ports.ts'
import { run } from '../support/process.ts'
import { sendRaw } from '../support/raw.ts'
import {
  closedTunnels,
  newKey,
  openSocket,
  openTunnel,
  startLocal,
  startPlane,
  startTunnel,
  startTunnelEdge,
  visit,
} from '../support/tunnels.ts'
import { until } from '../support/until.ts'

/** An edge without a control plane, with a key for each workspace. */
async function startAlone(t: Test, slugs: string[], env: Record<string, string> = {}) {
  const file = join(createFolder(t), 'tokens.json')
  const keys: string[] = []
  for (const slug of slugs) {
    const { stdout } = await run(t, ['tokens-file', 'add', slug, '--file', file], {})
    keys.push(stdout.trim())
  }
  const edge = await startTunnelEdge(t, {
    words: ['--tokens-file', file],
    // Nobody is there: it must not even be asked.
    env: { ADIT_URL: 'http://127.0.0.1:9', ADIT_TUNNEL_DOMAIN: 'tunnels.test', ...env },
  })
  return { edge, file, keys, local: await startLocal(t) }
}

test('without a control plane a tokens file governs: tunnels open, carry traffic, and close when their token is removed', async (t) => {
  const { edge, file, keys, local } = await startAlone(t, ['acme', 'beta'])
  const [acme = '', beta = ''] = keys
  const tunnel = await openTunnel(t, { edge, key: acme, port: local.port, name: 'app' })
  const other = await openTunnel(t, { edge, key: beta, port: local.port, name: 'app' })
  assert.deepEqual([tunnel.host, other.host], ['app.acme.tunnels.test', 'app.beta.tunnels.test'])
  assert.equal((await visit(edge, tunnel.host, { path: '/bytes/100000' })).body.length, 100_000)
  const { tokens } = JSON.parse(readFileSync(file, 'utf8'))
  await run(t, ['tokens-file', 'remove', tokens[0].id, '--file', file], {})
  const { code, stderr } = await tunnel.ended
  assert.equal(code, 4)
  assert.match(stderr, /no API key that the edge knows/)
  assert.equal((await visit(edge, tunnel.host)).status, 404)
  assert.equal((await visit(edge, other.host)).status, 200)
  edge.child.kill('SIGTERM')
  const { code: edgeCode, stderr: log } = await edge.ended
  assert.equal(edgeCode, 0)
  assert.deepEqual(
    closedTunnels(log).map(({ workspace, ending, requests }) => [workspace, ending, requests]),
    [
      ['acme', 'revoked', 1],
      ['beta', 'stopped', 1],
    ],
  )
  for (const key of keys) assert.ok(!log.includes(key), 'the log holds a key')
})

test('refusals say why: a bad key, a workspace that is not provisioned, a name that is taken or none', async (t) => {
  const plane = await startPlane(t, 'acme')
  await plane.admin('workspace', 'create', 'later')
  const edge = await startTunnelEdge(t, { plane })
  const { port } = await startLocal(t)
  const key = await newKey(plane, 'acme')
  await openTunnel(t, { edge, key, port, name: 'taken' })
  const refusal = async (given: { key: string; name: string }) => {
    const { code, stderr } = await startTunnel(t, { edge, port, ...given }).ended
    const { error, message } = JSON.parse(stderr.trim().split('\n').at(-1) as string)
    return [code, error, message]
  }
  assert.deepEqual(await refusal({ key: `${key.slice(0, -1)}!`, name: 'app' }), [
    4,
    'unauthorized',
    'This is no API key that the edge knows. Was it copied whole?',
  ])
  assert.deepEqual(await refusal({ key: await newKey(plane, 'later'), name: 'app' }), [
    1,
    'not_provisioned',
    'The workspace "later" is not ready for tunnels yet: it is not provisioned.',
  ])
  assert.deepEqual(await refusal({ key, name: 'taken' }), [
    1,
    'name_taken',
    'A tunnel is open at taken.acme.localhost already. Choose another name.',
  ])
  for (const name of ['app.other', 'App', 'app-', 'a'.repeat(64)])
    assert.deepEqual((await refusal({ key, name })).slice(0, 2), [2, 'usage'], name)
})

test('no workspace gets what is for another: not by name, by host, or by headers', async (t) => {
  const { edge, keys, local } = await startAlone(t, ['acme', 'beta'])
  const [acme = '', beta = ''] = keys
  const victim = await openTunnel(t, { edge, key: acme, port: local.port, name: 'app' })
  const thief = await startLocal(t)
  const mine = await openTunnel(t, { edge, key: beta, port: thief.port, name: 'app' })

  // Whatever the request that opens a tunnel says of hosts, the name is under the base of the key's workspace.
  const opened = await visit(edge, victim.host, {
    method: 'POST',
    path: '/.adit/tunnels',
    body: Buffer.from('{"name":"second","host":"app.acme.tunnels.test","workspace":"acme"}'),
    headers: { authorization: `Bearer ${beta}`, 'x-forwarded-host': victim.host },
  })
  assert.equal(JSON.parse(String(opened.body)).host, 'second.beta.tunnels.test')

  // A connection is taken for the tunnel whose secret it has, and for no other.
  for (const secret of [victim.host, 'app', 'A'.repeat(32)]) {
    const answer = await sendRaw(
      edge.url,
      `GET /.adit/connection HTTP/1.1\r\nHost: ${victim.host}\r\nConnection: Upgrade\r\nUpgrade: adit-tunnel\r\n` +
        `Authorization: Tunnel ${secret}\r\n\r\n`,
    )
    assert.equal(answer.status, 404)
  }

  // Visitors: only the Host header counts, however it is written, and there must be one.
  const seen = async (head: string) => {
    const before = [local.heard.length, thief.heard.length]
    const { status } = await sendRaw(edge.url, `GET / HTTP/1.1\r\n${head}Connection: close\r\n\r\n`)
    return [status, local.heard.length - (before[0] as number), thief.heard.length - (before[1] as number)]
  }
  assert.deepEqual(await seen(`Host: ${victim.host}\r\nX-Forwarded-Host: ${mine.host}\r\n`), [200, 1, 0])
  assert.deepEqual(await seen(`Host: ${mine.host}\r\nForwarded: host=${victim.host}\r\n`), [200, 0, 1])
  assert.deepEqual(await seen(`Host: APP.acme.Tunnels.test.:8081\r\n`), [200, 1, 0])
  for (const head of [
    `Host: ${victim.host}\r\nHost: ${mine.host}\r\n`,
    'Host:\r\n',
    '',
    `Host: ${victim.host}, ${mine.host}\r\n`,
    `Host: ${victim.host}@${mine.host}\r\n`,
    `Host: ${mine.host}/${victim.host}\r\n`,
  ]) {
    const [status, ...reached] = await seen(head)
    assert.ok(status === 400 || status === 404, `${head}: ${status}`)
    assert.deepEqual(reached, [0, 0], head)
  }
  const absolute = await sendRaw(
    edge.url,
    `GET http://${victim.host}/ HTTP/1.1\r\nHost: ${mine.host}\r\nConnection: close\r\n\r\n`,
  )
  assert.equal(absolute.status, 400)
})

test('what one visitor sends is never taken for another one’s request', async (t) => {
  const { edge, keys, local } = await startAlone(t, ['acme'])
  const { host } = await openTunnel(t, { edge, key: keys[0] as string, port: local.port, name: 'app' })
  const hidden = 'GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n'
  for (const head of [
    `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close, content-length\r\nContent-Length: ${hidden.length}\r\n\r\n`,
    `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close, transfer-encoding\r\nTransfer-Encoding: chunked\r\n\r\n${hidden.length.toString(16)}\r\n`,
  ])
    await sendRaw(edge.url, `${head}${hidden}\r\n0\r\n\r\n`)
  for (let turn = 0; turn < 5; turn++) assert.equal((await visit(edge, host, { path: '/mine' })).status, 200)
  assert.deepEqual([...new Set(local.heard.map(({ url }) => url))].sort(), ['/', '/mine'])
})

test('an answer that comes before the request was read holds up nobody', async (t) => {
  const { edge, keys, local } = await startAlone(t, ['acme'])
  const { host } = await openTunnel(t, { edge, key: keys[0] as string, port: local.port, name: 'app' })
  for (let turn = 1; turn <= 60; turn++) {
    const body = Buffer.alloc(turn * 5_000)
    assert.equal((await visit(edge, host, { method: 'POST', path: '/early', body })).status, 200)
    assert.equal((await visit(edge, host)).status, 200)
  }
})

test('heads pass as they were, with where the request came from; what concerns one connection does not', async (t) => {
  const { edge, keys, local } = await startAlone(t, ['acme'])
  const { host } = await openTunnel(t, { edge, key: keys[0] as string, port: local.port, name: 'app' })
  const headers = { 'X-Mine': 'é', te: 'trailers', 'keep-alive': '5', 'x-forwarded-for': '203.0.113.9' }
  const { body } = await visit(edge, host, { path: '/a%20b?c=%2F', headers })
  const said = JSON.parse(String(body))
  assert.equal(said.url, '/a%20b?c=%2F')
  assert.equal(said.headers.host, host)
  assert.equal(said.headers['x-mine'], 'é')
  assert.equal(said.headers['x-forwarded-for'], '203.0.113.9, 127.0.0.1')
  assert.equal(said.headers['x-forwarded-host'], host)
  assert.equal(said.headers['x-forwarded-proto'], 'http')
  assert.deepEqual([said.headers.te, said.headers['keep-alive']], [undefined, undefined])
})

test('what is behind a tunnel may be away, slow or broken: visitors are told, and the tunnel stays', async (t) => {
  const { edge, keys, local } = await startAlone(t, ['acme'])
  const port = await freePort()
  const tunnel = await openTunnel(t, { edge, key: keys[0] as string, port, name: 'app' })
  const absent = await visit(edge, tunnel.host)
  assert.deepEqual(
    [absent.status, String(absent.body)],
    [502, `Nothing answers at localhost:${port}, where this tunnel leads.\n`],
  )
  await assert.rejects(openSocket(edge, tunnel.host), /502/)

  // Not even HTTP, or with a status that is none.
  const strange = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end('HTTP/1.1 099 What\r\nContent-Length: 0\r\n\r\n'))
  })
  strange.listen(port, 'localhost')
  await once(strange, 'listening')
  assert.equal((await visit(edge, tunnel.host)).status, 502)
  strange.close()

  // Pieces come as they are sent.
  const good = await openTunnel(t, { edge, key: keys[0] as string, port: local.port, name: 'good' })
  const socket = connect(edge.port, '127.0.0.1')
  socket.write(`GET /drip/100 HTTP/1.1\r\nHost: ${good.host}\r\n\r\n`)
  const [first] = await once(socket, 'data')
  assert.ok(first.length < 100_000)
  socket.destroy()
  const events = tunnel.events().filter(({ event }) => event === 'request')
  assert.deepEqual(
    events.map(({ method, path, status }) => [method, path, status]),
    [
      ['GET', '/', 502],
      ['GET', '/', 502],
      ['GET', '/', 502],
    ],
  )
})

test('a tunnel comes back by itself under its name when the edge was away', async (t) => {
  const { edge, keys, local } = await startAlone(t, ['acme'])
  const tunnel = await openTunnel(t, { edge, key: keys[0] as string, port: local.port, name: 'app' })
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    edge.child.kill(signal)
    await edge.ended
    Object.assign(edge, await edge.restart())
    await until('it is back', async () => (await visit(edge, tunnel.host)).status === 200, 10_000)
  }
  const events = tunnel.events().map(({ event }) => event)
  assert.deepEqual(events.filter((event) => event === 'open').length, 3, events.join())
})

test('many visitors at once share a tunnel, and one too many is told to come again', async (t) => {
  const { edge, keys, local } = await startAlone(t, ['acme'])
  const { host } = await openTunnel(t, { edge, key: keys[0] as string, port: local.port, name: 'app' })
  const sockets = await Promise.all(Array.from({ length: 90 }, () => openSocket(edge, host)))
  const answers = await Promise.all(
    Array.from({ length: 60 }, (_, index) => visit(edge, host, { path: `/drip/${20 + index}` })),
  )
  const statuses = answers.map(({ status }) => status)
  assert.ok(statuses.filter((status) => status === 200).length >= 10, statuses.join())
  assert.ok(statuses.includes(503), statuses.join())
  assert.deepEqual(
    statuses.filter((status) => status !== 200 && status !== 503),
    [],
  )
  for (const socket of sockets) socket.terminate()
  await until('there is room again', async () => (await visit(edge, host)).status === 200)
})

test('a stock pipenet client works too, by its own protocol', async (t) => {
  const pipenetPort = await freePort()
  const { edge, keys, local } = await startAlone(t, ['acme'], { ADIT_EDGE_PIPENET_PORT: String(pipenetPort) })
  const client = (key: string) =>
    pipenet({
      port: local.port,
      host: `${edge.url}/.adit/pipenet`,
      subdomain: 'stock',
      headers: { authorization: `Bearer ${key}` },
    })
  await assert.rejects(client('adit_wrong'), /no API key that the edge knows/)
  const tunnel = await client(keys[0] as string)
  t.after(() => tunnel.close())
  assert.equal(tunnel.url, `http://stock.acme.tunnels.test:${edge.port}`)
  const host = new URL(tunnel.url as string).hostname
  await until('it is connected', async () => (await visit(edge, host)).status === 200)
  assert.equal((await visit(edge, host, { method: 'POST', body: Buffer.alloc(300_000) })).status, 200)
  tunnel.close()
  await until('it is closed', async () => (await visit(edge, host)).status === 404, 10_000)
})
