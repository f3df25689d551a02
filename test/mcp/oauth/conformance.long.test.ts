// The conformance tests of the protocol, as far as they apply: docs/agents.md says which do not.
import assert from 'node:assert/strict'
import { createServer, request } from 'node:http'
import { join } from 'node:path'
import { registerClient } from '../../support/accounts/agents.ts'
import { test } from '../../support/browser.ts'
import type { Test } from '../../support/cleanup.ts'
import { createFolder } from '../../support/databases/create.ts'
import { listen } from '../../support/network/listen.ts'
import { freePort } from '../../support/processes/ports.ts'
import { startProgram } from '../../support/processes/program.ts'
import { environment, packages, setUp } from './npm-packages.ts'

/** In a folder of its own, where it writes its results. */
function startConformance(t: Test, args: string[]) {
  const folder = createFolder(t)
  const program = join(packages, '@modelcontextprotocol/conformance/dist/index.js')
  return startProgram(t, process.execPath, [program, ...args], { cwd: folder, env: environment(folder) })
}

test('the authorization server passes the conformance tests', async (t) => {
  const { server, url, approve } = await setUp(t)
  const port = String(await freePort())
  const clientId = await registerClient(server.url, `http://127.0.0.1:${port}/callback`)
  const client = ['--client-id', clientId, '--resource', url, '--port', port]
  const args = ['authorization', '--url', server.url, ...client, '--spec-version', '2026-07-28']
  const conformance = startConformance(t, args)
  await approve(conformance.output)
  await conformance.ended
  assert.equal(conformance.child.exitCode, 0, conformance.output())
  assert.match(conformance.output(), /authorization-code-grant: [1-9]\d* passed, 0 failed/)
})

/** Without those for prompts, resources, subscriptions and extensions, and for tools of their own. */
const SCENARIOS: Record<string, string[]> = {
  '2025-11-25': ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection'],
  '2026-07-28': ['tools-list', 'dns-rebinding-protection', 'http-header-validation'],
}

test('/mcp passes the conformance tests for what it has', async (t) => {
  const { server } = await setUp(t)
  const { hostname, port } = new URL(server.url)
  // The tests send no credentials.
  const withKey = createServer((incoming, response) => {
    const headers = { ...incoming.headers, authorization: `Bearer ${server.key.token}` }
    const { url: path, method } = incoming
    const outgoing = request({ hostname, port, path, method, headers }, (received) => {
      response.writeHead(received.statusCode ?? 0, received.headers)
      received.pipe(response)
    })
    incoming.pipe(outgoing)
  })
  const url = `http://127.0.0.1:${await listen(t, withKey)}/mcp`
  for (const [revision, scenarios] of Object.entries(SCENARIOS))
    for (const scenario of scenarios) {
      const args = ['server', '--url', url, '--scenario', scenario, '--spec-version', revision]
      const conformance = startConformance(t, args)
      await conformance.ended
      const output = conformance.output()
      assert.equal(conformance.child.exitCode, 0, output)
      assert.match(output, /Passed: [1-9]\d*\/\d+, 0 failed/, output)
    }
})
