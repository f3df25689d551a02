// Clients from npm sign in without a key, in a real browser, and call a tool; and the authorization server
// passes the conformance tests of the protocol.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { button, openPageAs } from '../../pages/support/harness.ts'
import { serveWithOwner } from '../../support/accounts/users.ts'
import { test } from '../../support/browser.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { createFolder } from '../../support/databases/create.ts'
import { readRows } from '../../support/databases/rows.ts'
import { collectText } from '../../support/network/collect.ts'
import { installPackages } from '../../support/processes/npm-packages.ts'
import { freePort } from '../../support/processes/ports.ts'
import { root } from '../../support/processes/process.ts'
import { startProgram } from '../../support/processes/program.ts'
import { until } from '../../support/until.ts'

const packages = join(installPackages(join(root, 'test/mcp/clients'), 'mcp-clients'), 'node_modules')

/** Nothing of the user who runs the tests. */
const environment = (home: string) => ({
  PATH: process.env.PATH ?? '',
  HOME: home,
  MCP_REMOTE_CONFIG_DIR: home,
})

async function setUp(t: Test) {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  /** Approves in the browser what a program asks for by a URL in its output. */
  const approve = async (output: () => string) => {
    const find = () => new RegExp(`${server.url}/authorize\\?[\\w%.~+=&-]+`).exec(output())?.[0]
    await until('the program prints the URL', () => find() !== undefined).catch((error) => {
      throw new Error(`${error.message}\n${output()}`)
    })
    const { page } = await openPageAs(t, server.url, ann)
    await page.goto(find() as string)
    await button(page, 'Approve').click()
    return page
  }
  const readKeys = () => readRows(server.services, 'api_keys', { agent_access: 'read' })
  return { url: `${server.url}/mcp`, issuer: server.url, approve, readKeys }
}

test('mcp-remote signs in, and a client of standard input and output calls a tool through it', async (t) => {
  const { url, approve, readKeys } = await setUp(t)
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [join(packages, 'mcp-remote/dist/proxy.js'), url, String(await freePort())],
    env: environment(createFolder(t)),
    stderr: 'pipe',
  })
  const client = new Client({ name: 'test', version: '1' })
  atEnd(t, () => client.close())
  const connected = client.connect(transport)
  // Nobody awaits it until the approval.
  connected.catch(() => {})
  await approve(collectText(transport.stderr as NodeJS.ReadableStream | null))
  await connected
  const { content } = await client.callTool({ name: 'get_workspace' })
  assert.match(JSON.stringify(content), /acme/)
  assert.equal((await readKeys()).length, 1)
})

test('MCP Inspector signs in and calls a tool', async (t) => {
  const { url, approve, readKeys } = await setUp(t)
  const callback = `http://127.0.0.1:${await freePort()}/oauth/callback`
  const inspector = startProgram(
    t,
    process.execPath,
    [
      join(packages, '@modelcontextprotocol/inspector/clients/launcher/build/index.js'),
      ...['--cli', url, '--transport', 'http', '--callback-url', callback],
      ...['--method', 'tools/call', '--tool-name', 'get_workspace'],
    ],
    // Without a terminal it signs in only if it may open a browser.
    { env: { ...environment(createFolder(t)), MCP_AUTO_OPEN_ENABLED: 'true' } },
  )
  await approve(inspector.output)
  await inspector.waitFor(/"slug": *"acme"/)
  assert.equal((await readKeys()).length, 1)
})
