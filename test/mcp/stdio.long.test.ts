// `adit mcp` as a process: its output, its end, and an unreachable server.
import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { serve } from '../support/api/server.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import { freePort } from '../support/processes/ports.ts'
import { callMessage, connectAgent, exchangeLines, hello, listToolNames } from './agent.ts'

test('standard output has only protocol messages, every request gets a response, then the process exits', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const access = { url: server.url, apiKey: server.key.token }
  const written = await exchangeLines(t, access, [
    hello,
    callMessage(1, 'get_workspace'),
    callMessage(2, 'get_usage'),
  ])
  const responses = written
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  assert.deepEqual(responses.map(({ id }) => id).sort(), [0, 1, 2])
  for (const { result } of responses) assert.ok(result && !result.isError)
})

test('with an unreachable server, listing and calling fail; they work once it is reachable', async (t) => {
  const port = await freePort()
  const server = await serve(t, { engine: 'sqlite' })
  const agent = await connectAgent(t, 'stdio', { url: `http://127.0.0.1:${port}`, apiKey: server.key.token })
  await assert.rejects(
    agent.client.listTools(),
    /Failed to list tools\. http:\/\/127\.0\.0\.1:\d+ cannot be reached/,
  )
  assert.match((await agent.call('get_workspace')).text, /^unreachable: /)
  await forward(t, port, server.url)
  assert.equal((await listToolNames(agent)).length, 10)
  assert.equal((await agent.call('get_workspace')).data.slug, 'acme')
})

test('a server that is not Adit is reported as such', async (t) => {
  const other = createServer((_request, response) => response.end('{}')).listen(0, '127.0.0.1')
  atEnd(t, () => other.close())
  await new Promise((resolve) => other.once('listening', resolve))
  const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`
  const agent = await connectAgent(t, 'stdio', { url, apiKey: 'adit_x' })
  await assert.rejects(agent.client.listTools(), /is not from an Adit server\. Check the server URL/)
})

/** Forwards requests from another port to the server. */
async function forward(t: Test, port: number, target: string): Promise<void> {
  const front: Server = createServer(async (request, response) => {
    const headers = { authorization: request.headers.authorization ?? '' }
    const forwarded = await fetch(target + request.url, { headers })
    response.writeHead(forwarded.status, { 'content-type': 'application/json' }).end(await forwarded.text())
  })
  front.listen(port, '127.0.0.1')
  atEnd(t, () => {
    front.closeAllConnections()
    front.close()
  })
  await new Promise((resolve) => front.once('listening', resolve))
}
