// Which Host and Origin /mcp accepts, and which Accept.
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, test } from 'node:test'
import { serve, type TestServer } from '../support/api/server.ts'
import { callMessage, connectAgent } from './agent.ts'

interface Sent {
  method?: string
  headers?: Record<string, string>
  path?: string
}

/** With a Host of its own, which `fetch` does not send. */
const send = ({ url, key }: TestServer, { method = 'POST', headers = {}, path = '/mcp' }: Sent = {}) =>
  new Promise<{ status: number; headers: Record<string, unknown>; body: string }>((resolve, reject) => {
    const sent = request(url + path, {
      method,
      headers: {
        authorization: `Bearer ${key.token}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
      },
    })
    sent.on('error', reject).on('response', async (response) => {
      const chunks = await response.toArray()
      const body = Buffer.concat(chunks).toString()
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body })
    })
    sent.end(method === 'POST' ? JSON.stringify(callMessage(1, 'get_workspace')) : undefined)
  })

const plain = await serve({ after }, { engine: 'sqlite' })

test('a request for another host is 403, with or without a key', async () => {
  const server = plain
  const { port } = new URL(server.url)
  for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`, '127.0.0.1', 'LOCALHOST'])
    assert.equal((await send(server, { headers: { host } })).status, 200, host)
  for (const host of [
    'evil.example',
    `evil.example:${port}`,
    `127.0.0.1.evil.example:${port}`,
    `localhost.evil.example:${port}`,
    `evil.example@127.0.0.1:${port}`,
    `127.0.0.1:${port}/evil.example`,
    '192.0.2.1',
    '0.0.0.0',
  ])
    for (const method of ['POST', 'GET', 'DELETE', 'OPTIONS'])
      for (const authorization of [`Bearer ${server.key.token}`, '']) {
        const { status, body } = await send(server, { method, headers: { host, authorization } })
        assert.equal(status, 403, `${method} ${host}`)
        assert.match(JSON.parse(body).message, /ADIT_BASE_URL/)
      }
})

test('the host of the public URL is accepted, and its port as browsers write it', async (t) => {
  const env = { ADIT_BASE_URL: 'https://adit.example.com/base' }
  const server = await serve(t, { engine: 'sqlite', env })
  for (const host of ['adit.example.com', 'ADIT.example.com', 'adit.example.com:443', 'localhost'])
    assert.equal((await send(server, { headers: { host } })).status, 200, host)
  for (const host of ['adit.example.com:8443', 'example.com', 'x.adit.example.com', 'adit.example.com.evil'])
    assert.equal((await send(server, { headers: { host } })).status, 403, host)
})

test('pages of other origins are rejected, unless ADIT_MCP_ORIGINS has them; preflight allows just these', async (t) => {
  const env = {
    ADIT_BASE_URL: 'https://adit.example.com',
    ADIT_MCP_ORIGINS: 'https://agents.example.com, http://localhost:6274,chrome-extension://abcdef',
  }
  const server = await serve(t, { engine: 'sqlite', env })
  const host = 'adit.example.com'
  const allowed = ['https://adit.example.com', ...env.ADIT_MCP_ORIGINS.split(',').map((text) => text.trim())]
  for (const origin of allowed) {
    const { status, headers } = await send(server, { headers: { host, origin } })
    assert.equal(status, 200, origin)
    assert.equal(headers['access-control-allow-origin'], origin)
    assert.equal(headers.vary, 'Origin')
    const preflight = await send(server, { method: 'OPTIONS', headers: { host, origin, authorization: '' } })
    assert.equal(preflight.status, 204)
    assert.equal(preflight.headers['access-control-allow-origin'], origin)
    assert.match(String(preflight.headers['access-control-allow-methods']), /POST/)
    for (const name of ['Authorization', 'Content-Type', 'Mcp-Protocol-Version', 'Mcp-Method', 'Mcp-Name'])
      assert.ok(String(preflight.headers['access-control-allow-headers']).includes(name), name)
    // A page can read why its key is rejected.
    const rejected = await send(server, { headers: { host, origin, authorization: '' } })
    assert.equal(rejected.status, 401)
    assert.equal(rejected.headers['access-control-allow-origin'], origin)
  }
  for (const origin of [
    'null',
    'https://evil.example',
    'http://adit.example.com',
    'https://adit.example.com:8443',
    'https://adit.example.com.evil.example',
    'https://x.agents.example.com',
    'http://localhost:6275',
    `${allowed[0]}, ${allowed[1]}`,
  ])
    for (const method of ['POST', 'GET', 'DELETE', 'OPTIONS']) {
      const { status, headers, body } = await send(server, { method, headers: { host, origin } })
      assert.equal(status, 403, `${method} ${origin}`)
      assert.equal(headers['access-control-allow-origin'], undefined)
      assert.match(JSON.parse(body).message, /ADIT_MCP_ORIGINS/)
    }
  const other = await send(server, {
    method: 'GET',
    path: '/api/v1/workspace',
    headers: { origin: 'https://x.y' },
  })
  assert.equal(other.status, 200)
  assert.equal(other.headers['access-control-allow-origin'], '*')
})

test('the MCP client works without an origin, and with one that is allowed', async (t) => {
  const env = { ADIT_MCP_ORIGINS: 'https://agents.example.com' }
  const server = await serve(t, { engine: 'sqlite', env })
  for (const headers of [{}, { origin: 'https://agents.example.com' }]) {
    const access = { url: server.url, apiKey: server.key.token, headers }
    const agent = await connectAgent(t, 'http', access)
    assert.equal((await agent.call('get_workspace')).failed, false)
  }
  const foreign = { url: server.url, apiKey: server.key.token, headers: { origin: 'https://evil.example' } }
  await assert.rejects(connectAgent(t, 'http', foreign), /ADIT_MCP_ORIGINS|403/)
})

test('a client that accepts JSON gets JSON, whether or not it accepts event streams', async () => {
  const server = plain
  for (const accept of [
    '*/*',
    'application/json',
    'application/*',
    'text/html, */*;q=0.1',
    'Application/JSON; charset=utf-8',
    'application/json, text/event-stream',
  ]) {
    const { status, headers, body } = await send(server, { headers: { accept } })
    assert.equal(status, 200, accept)
    assert.match(String(headers['content-type']), /^application\/json/)
    assert.equal(JSON.parse(body).id, 1)
  }
  for (const accept of ['text/html', 'text/event-stream', 'application/json;q=0', 'application/jsonx'])
    assert.equal((await send(server, { headers: { accept } })).status, 406, accept)
})
