// What a user does with an installed client: sign in, look around, open a tunnel.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import type { Test } from '../support/cleanup.ts'
import { fetchHost, newKey, type Plane, startLocal, startTunnelEdge } from '../support/edges/tunnels.ts'
import { startProgram } from '../support/processes/program.ts'

interface InstalledClient {
  /** The program and its first arguments. */
  command: readonly [string, ...string[]]
  /** All of its environment. */
  env: Record<string, string>
}

/** Without the token. */
const INSPECTOR = /http:\/\/127\.0\.0\.1:\d+\/(?=#token=)/

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
}

const LIST_TOOLS = { jsonrpc: '2.0', id: 2, method: 'tools/list' }

export async function assertClientWorks(t: Test, plane: Plane, client: InstalledClient): Promise<void> {
  const { env } = client
  const [program, ...first] = client.command
  const run = (args: string[], input = '') => {
    const { status, stdout, stderr } = spawnSync(program, [...first, ...args], {
      env,
      input,
      encoding: 'utf8',
    })
    assert.equal(status, 0, `${args.join(' ')}: ${stdout}${stderr}`)
    return stdout
  }
  const key = await newKey(plane, 'acme')
  assert.match(run(['login', plane.url], key), /Signed in/)
  assert.match(run(['keys', 'list']), /tok_\w+ .* active/)
  assert.match(run(['workspace']), /acme/)
  assert.match(run(['usage']), /Traffic|traffic/)
  assert.match(run(['completion', 'bash']), /complete -F _adit adit/)
  const messages = [INITIALIZE, LIST_TOOLS].map((message) => `${JSON.stringify(message)}\n`).join('')
  assert.match(run(['mcp', '--allow-port', '3000'], messages), /"serverInfo".*"open_local_tunnel"/s)

  const edge = await startTunnelEdge(t, { plane })
  const local = await startLocal(t)
  const args = ['tunnel', String(local.port), '--name', 'app', '--inspect', '--edge', edge.url]
  const tunnel = startProgram(t, program, [...first, ...args], { env })
  await tunnel.waitFor(/http:\/\/app\.acme\.localhost/)
  await tunnel.waitFor(INSPECTOR)
  await assertHasInspectorPage(INSPECTOR.exec(tunnel.output())?.[0] ?? '')
  // For three seconds: a client that replaces its connection without a need cuts the response off.
  const { status, body } = await fetchHost(edge, 'app.acme.localhost', { path: '/drip/300' })
  assert.deepEqual([status, body.length], [200, 3_000_000])
  await tunnel.waitFor(/GET +\/drip\/300/)
  assert.match(run(['tunnels', 'list', '--name', 'app']), /tun_\w+ +http:\/\/app\.acme\.localhost/)
  assert.match(run(['logout']), /Removed profile/)
}

async function assertHasInspectorPage(url: string): Promise<void> {
  const html = await (await fetch(url)).text()
  const files = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = '']) => path)
  assert.equal(files.length, 3, html)
  for (const path of files) assert.equal((await fetch(new URL(path, url))).status, 200, path)
}
