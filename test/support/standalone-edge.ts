// An edge without a control plane, and a tunnel client whose bytes the test controls.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import type { Test } from './cleanup.ts'
import { createFolder } from './databases.ts'
import { run } from './process.ts'
import { type Edge, fetchHost, startLocal, startTunnelEdge } from './tunnels.ts'

/** With an API key for each workspace, and a local server. */
export async function startStandaloneEdge(t: Test, slugs: string[], env: Record<string, string> = {}) {
  const file = join(createFolder(t), 'tokens.json')
  const keys: string[] = []
  for (const slug of slugs) {
    const { stdout } = await run(t, ['tokens-file', 'add', slug, '--file', file], {})
    keys.push(stdout.trim())
  }
  const edge = await startTunnelEdge(t, {
    args: ['--tokens-file', file],
    // Nothing listens at ADIT_URL: a tokens file needs no control plane.
    env: { ADIT_URL: 'http://127.0.0.1:9', ADIT_TUNNEL_DOMAIN: 'tunnels.test', ...env },
  })
  return { edge, file, keys, local: await startLocal(t) }
}

/** A tunnel whose connections respond to one request each, with the bytes of the test. */
export async function openRawTunnel(edge: Edge, key: string, name?: string) {
  const { body } = await fetchHost(edge, 'x', {
    method: 'POST',
    path: '/.adit/tunnels',
    headers: { authorization: `Bearer ${key}` },
    body: Buffer.from(JSON.stringify({ name })),
  })
  const { id, host } = JSON.parse(String(body)) as { id: string; host: string }
  async function addConnection() {
    const socket = connect(edge.port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write(
      'GET /.adit/connection HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: adit-tunnel\r\n' +
        `Authorization: Tunnel ${id}\r\n\r\n`,
    )
    const [head] = await once(socket, 'data')
    assert.match(String(head), /^HTTP\/1.1 101 /)
    return {
      socket,
      respond: (bytes: string) => socket.once('data', () => socket.write(bytes, 'latin1')),
      close: () => socket.destroy(),
    }
  }
  return { id, host, addConnection }
}
