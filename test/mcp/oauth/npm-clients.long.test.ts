// Clients from npm sign in without a key, in a real browser, and call a tool.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { test } from '../../support/browser.ts'
import { atEnd } from '../../support/cleanup.ts'
import { createFolder } from '../../support/databases/create.ts'
import { collectText } from '../../support/network/collect.ts'
import { freePort } from '../../support/processes/ports.ts'
import { startProgram } from '../../support/processes/program.ts'
import { environment, packages, setUp } from './npm-packages.ts'

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
