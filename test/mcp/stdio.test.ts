// `adit mcp` as a process: what it writes, when it ends, and how it takes a server that is not there.
import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { atEnd, type Test } from '../support/cleanup.ts'
import { freePort } from '../support/ports.ts'
import { serve } from '../support/server.ts'
import { callMessage, connectAgent, exchangeLines, namesOf } from './agent.ts'

const hello = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
}

test('standard output holds the protocol and nothing else, all that was asked is answered, then it ends', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const access = { url: server.url, apiKey: server.key.token }
  const written = await exchangeLines(t, access, [
    hello,
    callMessage(1, 'get_workspace'),
    callMessage(2, 'get_usage'),
  ])
  const answers = written
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  assert.deepEqual(answers.map(({ id }) => id).sort(), [0, 1, 2])
  for (const answer of answers) assert.ok(answer.result && !answer.result.isError)
})

test('a server that is not there yet: listing and calling say so, and later they work', async (t) => {
  const port = await freePort()
  const server = await serve(t, { engine: 'sqlite' })
  const agent = await connectAgent(t, 'stdio', { url: `http://127.0.0.1:${port}`, apiKey: server.key.token })
  await assert.rejects(
    agent.client.listTools(),
    /The tools cannot be listed\. http:\/\/127\.0\.0\.1:\d+ cannot be reached/,
  )
  assert.match((await agent.call('get_workspace')).text, /^unreachable: /)
  await forward(t, port, server.url)
  assert.equal((await namesOf(agent)).length, 5)
  assert.equal((await agent.call('get_workspace')).data.slug, 'acme')
})

test('what answers but is no Adit is told as such', async (t) => {
  const other = createServer((_request, response) => response.end('{}')).listen(0, '127.0.0.1')
  atEnd(t, () => other.close())
  await new Promise((resolve) => other.once('listening', resolve))
  const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`
  const agent = await connectAgent(t, 'stdio', { url, apiKey: 'adit_x' })
  await assert.rejects(agent.client.listTools(), /is not from an Adit server\. Check the server URL/)
})

/** The server, at another port. */
async function forward(t: Test, port: number, target: string): Promise<void> {
  const front: Server = createServer(async (request, response) => {
    const headers = { authorization: request.headers.authorization ?? '' }
    const answer = await fetch(target + request.url, { headers })
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text())
  })
  front.listen(port, '127.0.0.1')
  atEnd(t, () => {
    front.closeAllConnections()
    front.close()
  })
  await new Promise((resolve) => front.once('listening', resolve))
}
