// nginx with TLS in front of an edge, with the configuration from the documentation.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { type ClientOptions, WebSocket } from 'ws'
import { createFolder } from '../../support/databases/create.ts'
import { startLocal, startTunnel, startTunnelEdge } from '../../support/edges/tunnels.ts'
import { freePort } from '../../support/processes/ports.ts'
import { run } from '../../support/processes/process.ts'
import { makeCertificate } from '../../support/proxies/certificates.ts'
import { nginx, startNginx } from '../../support/proxies/nginx.ts'

const HOST = 'app.acme.tunnels.example.com'

test('behind nginx, tunnel connections and public requests use TLS, including WebSockets', async (t) => {
  const made = makeCertificate(t, 'IP:127.0.0.1', `DNS:${HOST}`)
  if (!nginx || !made) return t.skip('nginx or openssl is not installed here')
  const file = join(createFolder(t), 'tokens.json')
  const key = (await run(t, ['tokens-file', 'add', 'acme', '--file', file], {})).stdout.trim()
  const edge = await startTunnelEdge(t, {
    args: ['--tokens-file', file],
    env: { ADIT_TUNNEL_DOMAIN: 'tunnels.example.com', ADIT_EDGE_PUBLIC: 'https' },
  })
  const local = await startLocal(t)
  const port = await freePort()
  await startNginx(t, port, 'docs/edges/adit-edge.nginx.conf', {
    'listen 443 ssl': `listen 127.0.0.1:${port} ssl default_server`,
    '/etc/ssl/tunnels.example.com.pem': made.certificate,
    '/etc/ssl/tunnels.example.com.key': made.key,
    '127.0.0.1:8081': `127.0.0.1:${edge.port}`,
  })
  const ca = readFileSync(made.certificate)
  const tunnel = startTunnel(t, {
    edge: { url: `https://127.0.0.1:${port}` },
    key,
    port: local.port,
    name: 'app',
    env: { NODE_EXTRA_CA_CERTS: made.certificate },
  })
  await tunnel.waitFor(/"event":"open"/)
  assert.equal(tunnel.events()[0]?.url, `https://${HOST}`)

  const options = { host: '127.0.0.1', port, ca, servername: HOST, headers: { host: HOST }, agent: false }
  const sent = request({ ...options, method: 'POST' })
  sent.end(Buffer.alloc(3_000_000))
  const [response] = await once(sent, 'response')
  const seen = JSON.parse(await text(response))
  assert.equal(seen.received, 3_000_000)
  assert.equal(seen.headers['x-forwarded-proto'], 'https')
  assert.equal(seen.headers.host, HOST)

  const trusting = { ca, servername: HOST, headers: { host: HOST } } as ClientOptions
  const socket = new WebSocket(`wss://127.0.0.1:${port}/`, trusting)
  await once(socket, 'open')
  socket.send(Buffer.alloc(1_000_000, 'w'))
  const [back] = await once(socket, 'message')
  assert.equal(back.length, 1_000_000)
  socket.terminate()
})
