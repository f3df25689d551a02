// A real frp with the configuration that the documents show.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { revoke } from '../../../src/server/domain/keys/lifecycle.ts'
import { provision } from '../../../src/server/domain/workspaces/manage.ts'
import {
  addEdge,
  addWorkspace,
  operator,
  serve,
  serveThroughRelay,
  type TestServer,
} from '../../support/api/server.ts'
import type { Test } from '../../support/cleanup.ts'
import { hasFrp, startApplication, startFrpc, startFrps, WITHOUT_FRP } from '../../support/edges/frp.ts'
import { freePort } from '../../support/processes/ports.ts'
import { nginx, startNginx } from '../../support/proxies/nginx.ts'
import { until } from '../../support/until.ts'

const LOGGED_IN = /login to server success/g

async function prepare(t: Test, server: TestServer) {
  const edge = await addEdge(server, 'frp-1')
  const frps = await startFrps(t, {
    'https://adit.example.com': server.url,
    'adit_edge_…': edge.token,
  })
  const host = `my-app.${server.workspace.slug}.${server.services.tunnelDomain}`
  return { frps, host, localPort: await startApplication(t), key: server.key.token }
}

test('frp serves the proxy of a valid key, and ends it when the key is revoked', async (t) => {
  if (!hasFrp) return t.skip(WITHOUT_FRP)
  const server = await serve(t, { engine: 'sqlite' })
  const { host, frps, ...client } = await prepare(t, server)
  const frpc = startFrpc(t, { frps, ...client })
  await frpc.waitFor(/start proxy success/)
  assert.equal(await frps.status(host), 200)
  assert.equal(await frps.status(host.replace('my-app', 'other')), 404)
  await revoke(server.ctx, server.key.id)
  await frpc.waitFor(/pong message contains error: This API key was revoked/)
  await until('the host name is gone', async () => (await frps.status(host)) === 404)
  await frpc.waitFor(/connect to server error: This API key was revoked/)
})

test('frpc prints what is wrong with its configuration', async (t) => {
  if (!hasFrp) return t.skip(WITHOUT_FRP)
  const server = await serve(t, { engine: 'sqlite' })
  const { host: _, ...client } = await prepare(t, server)
  const cases: [replacements: Record<string, string>, printed: RegExp][] = [
    [{ 'user = "acme"\n': '' }, /Set user = "acme" in frpc\.toml/],
    [{ 'metadatas.token': 'metadatas.key' }, /Set metadatas\.token = "adit_…" in frpc\.toml/],
    [{ 'subdomain = "my-app"': 'customDomains = ["example.com"]' }, /"example\.com" is not a host name/],
    [{ http: 'tcp', 'subdomain = "my-app"': 'remotePort = 6000' }, /Unsupported proxy type/],
  ]
  for (const [replacements, printed] of cases)
    await startFrpc(t, { ...client, replacements }).waitFor(printed)
})

test('proxies and groups of two workspaces may have the same names in frp', async (t) => {
  if (!hasFrp) return t.skip(WITHOUT_FRP)
  const server = await serve(t, { engine: 'sqlite' })
  const { frps, host, localPort, key } = await prepare(t, server)
  const other = await addWorkspace(server, 'other')
  await provision(server.services, operator, 'other')
  const group = { 'type = "http"': 'type = "http"\nloadBalancer.group = "web"' }
  const clients = [
    startFrpc(t, { frps, localPort, key, replacements: group }),
    startFrpc(t, {
      frps,
      localPort,
      key: other.key.token,
      replacements: { ...group, 'user = "acme"': 'user = "other"' },
    }),
  ]
  for (const frpc of clients) await frpc.waitFor(/start proxy success/)
  for (const name of [host, host.replace('acme', 'other')]) assert.equal(await frps.status(name), 200, name)
})

test('tunnels of frp stay open while the database is unreachable for 5 seconds', async (t) => {
  if (!hasFrp) return t.skip(WITHOUT_FRP)
  const { server, relay } = await serveThroughRelay(t)
  const { host, frps, ...client } = await prepare(t, server)
  const frpc = startFrpc(t, { frps, ...client })
  await frpc.waitFor(/start proxy success/)
  relay.cut()
  await sleep(5_000)
  assert.equal(await frps.status(host), 200)
  relay.mend()
  await until('Adit is ready', async () => (await fetch(`${server.url}/readyz`)).status === 200)
  await revoke(server.ctx, server.key.id)
  await frpc.waitFor(/pong message contains error/)
  assert.equal(frpc.output().match(LOGGED_IN)?.length, 1)
  assert.equal(frpc.output().match(/pong message contains error/g)?.length, 1)
})

test('with nginx next to frps, tunnels stay open without Adit, and no client logs in', async (t) => {
  if (!hasFrp) return t.skip(WITHOUT_FRP)
  if (!nginx) return t.skip('nginx is not installed here')
  const server = await serve(t, { engine: 'sqlite' })
  const edge = await addEdge(server, 'frp-1')
  const port = await freePort()
  const adit = new URL(server.url).host
  await startNginx(t, port, 'docs/edges/frp.nginx.conf', {
    '127.0.0.1:7080': `127.0.0.1:${port}`,
    'adit-1.example.com:8443': `127.0.0.1:${await freePort()}`,
    'adit-2.example.com:8443': adit,
    'https://adit;': 'http://adit;',
    'adit_edge_THE-CREDENTIAL-OF-THIS-SERVER': edge.token,
  })
  const frps = await startFrps(t, {
    'https://adit.example.com': `http://127.0.0.1:${port}`,
    '/edge/frp/adit_edge_…': '/frp',
    'heartbeatTimeout = 30': 'heartbeatTimeout = 4',
  })
  const client = { frps, localPort: await startApplication(t), key: server.key.token }
  const host = `my-app.acme.${server.services.tunnelDomain}`
  const frpc = startFrpc(t, client)
  await frpc.waitFor(/start proxy success/)
  await server.stop()
  // Longer than the heartbeat timeout: without an answer frps would have closed the tunnel.
  await sleep(6_000)
  assert.equal(await frps.status(host), 200)
  assert.equal(frpc.output().match(LOGGED_IN)?.length, 1)
  const name = { 'name = "web"': 'name = "second"', 'my-app': 'second' }
  await startFrpc(t, { ...client, replacements: name }).waitFor(/send Login request to plugin error/)
})
