// Errors reach the agent as results with a message and a hint.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { addWorkspace, rename, serve } from '../support/api/server.ts'
import { setRows } from '../support/databases/rows.ts'
import { pluck } from '../support/pluck.ts'
import { connectAgent, listToolNames, transports } from './agent.ts'

/** For tests that leave its key alone. */
const server = await serve({ after }, { engine: 'sqlite' })
const access = { url: server.url, apiKey: server.key.token }

for (const transport of transports) {
  test(`${transport}: invalid arguments are reported by name, and the call has no effect`, async (t) => {
    const agent = await connectAgent(t, transport, access)
    const wrong: [tool: string, args: Record<string, unknown>, words: RegExp][] = [
      ['get_usage', { days: 0 }, /days must be a whole number from 1 to 365\./],
      ['get_usage', { days: 1.5 }, /days must be a whole number/],
      ['get_usage', { days: '7' }, /days must be a whole number/],
      ['get_usage', { weeks: 1 }, /weeks is not an argument of this tool/],
      ['list_api_keys', { cursor: 'first' }, /cursor must be the id/],
      ['create_api_key', { label: 'x'.repeat(81) }, /label must not be longer than 80 characters/],
      ['create_api_key', { label: 5 }, /label must be a string/],
      ['create_api_key', { label: 'a\nb' }, /label must not contain U\+000A/],
      ['create_api_key', { name: 'ci' }, /name is not an argument/],
      ['revoke_api_key', {}, /id is missing/],
      ['list_tunnels', { limit: 201 }, /limit must be a whole number from 1 to 200/],
      ['list_tunnels', { cursor: 'my-app' }, /cursor must be `next` of the previous page/],
      ['list_tunnels', { workspace: 'other' }, /workspace is not an argument/],
      ['close_tunnel', {}, /id is missing/],
      ['revoke_api_key', { id: [server.key.id] }, /id must be a string/],
    ]
    const keys = async () => pluck((await agent.call('list_api_keys')).data.tokens, 'id', 'revokedAt')
    const before = await keys()
    const many = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`name${index}`, 1]))
    const { text } = await agent.call('get_usage', many)
    assert.equal(text.match(/is not an argument of this tool/g)?.length, 20, 'only the first 20 are reported')
    for (const [tool, args, words] of wrong) {
      const { failed, text, data } = await agent.call(tool, args)
      assert.equal(failed, true, text)
      assert.match(text, words)
      assert.match(text, /^invalid_request: .*\nCorrect the arguments/)
      assert.equal(data, undefined)
    }
    assert.deepEqual(await keys(), before)
  })

  test(`${transport}: an id that is unknown or already revoked is not_found, with a hint to list_api_keys`, async (t) => {
    const agent = await connectAgent(t, transport, access)
    const { id } = (await agent.call('create_api_key')).data
    await agent.call('revoke_api_key', { id })
    for (const unknownId of [id, 'tok_never', '', 'a/b', '..', '?x=1', 'x'.repeat(101)]) {
      const { failed, text } = await agent.call('revoke_api_key', { id: unknownId })
      assert.equal(failed, true)
      assert.match(text, /^not_found: .*\n.*already revoked\. Check with list_api_keys\.$/, unknownId)
    }
  })

  test(`${transport}: a tunnel that is not open is not_found, with a hint to list_tunnels`, async (t) => {
    const server = await serve(t, { engine: 'sqlite' })
    const agent = await connectAgent(t, transport, { url: server.url, apiKey: server.key.token })
    for (const tool of ['get_tunnel', 'close_tunnel'])
      for (const id of ['tun_0000000000', '', '..', 'x'.repeat(101)]) {
        const { failed, text } = await agent.call(tool, { id })
        assert.equal(failed, true)
        assert.match(text, /^not_found: .*\nNo open tunnel .*\. Check with list_tunnels\.$/, id)
      }
  })

  test(`${transport}: an agent is told what the policy of the workspace forbids, and not to call again`, async (t) => {
    const { key, workspace } = await addWorkspace(server, `read-only-${transport}`)
    await setRows(server.services, 'workspaces', { keys_read_only_at: Date.now() }, { id: workspace.id })
    const agent = await connectAgent(t, transport, { url: server.url, apiKey: key.token })
    const { failed, text } = await agent.call('create_api_key')
    assert.equal(failed, true)
    assert.match(
      text,
      /^invalid_request: The policy of this workspace does not let API keys create API keys\./,
    )
    assert.match(text, /\nTell the user\. Calling again does not help\.$/)
  })

  test(`${transport}: in variant B no tool changes anything, and calling one explains why`, async (t) => {
    const server = await serve(t, { engine: 'sqlite', env: { ADIT_API_VARIANT: 'B' } })
    const agent = await connectAgent(t, transport, { url: server.url, apiKey: server.key.token })
    const writing = ['create_api_key', 'revoke_api_key', 'close_tunnel']
    assert.deepEqual(new Set(await listToolNames(agent)).intersection(new Set(writing)), new Set())
    for (const name of writing) {
      const { failed, text } = await agent.call(name, name === 'create_api_key' ? {} : { id: server.key.id })
      assert.equal(failed, true)
      assert.match(text, /Ask the user to do it in the dashboard/)
    }
  })

  test(`${transport}: an internal error has the request id for the log, and nothing about its cause`, async (t) => {
    const agent = await connectAgent(t, transport, access)
    await rename(server, 'usage_days', 'elsewhere')
    const { failed, text } = await agent.call('get_usage')
    await rename(server, 'elsewhere', 'usage_days')
    assert.equal(failed, true)
    assert.match(text, /^internal: Internal server error\.\nTell the user\. .* request id [\w-]+\.$/)
  })

  test(`${transport}: an unknown tool is a protocol error`, async (t) => {
    const agent = await connectAgent(t, transport, access)
    await assert.rejects(agent.call('drop_database'), {
      code: -32602,
      message: 'Unknown tool "drop_database".',
    })
  })
}

test('http: every request of an agent counts towards the rate limit, and the error says how long to wait', async (t) => {
  const server = await serve(t, { engine: 'sqlite', env: { ADIT_RATE_LIMIT: '8' } })
  // One for the discovery, one for a list, and two for each call: itself, and its request to the API.
  const agent = await connectAgent(t, 'http', { url: server.url, apiKey: server.key.token })
  await listToolNames(agent)
  for (let call = 0; call < 2; call++) assert.equal((await agent.call('get_workspace')).failed, false)
  await listToolNames(agent)
  const { failed, text } = await agent.call('get_workspace')
  assert.equal(failed, true)
  assert.match(text, /^rate_limited: Too many requests.*\nWait \d+ s, then call again\.$/)
  await assert.rejects(listToolNames(agent), /rate_limited/)
})

test('stdio: a key that is revoked during the session is reported, and the process continues', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const agent = await connectAgent(t, 'stdio', { url: server.url, apiKey: server.key.token })
  assert.equal((await agent.call('revoke_api_key', { id: server.key.id })).failed, false)
  for (const name of ['get_workspace', 'create_api_key']) {
    const { failed, text } = await agent.call(name)
    assert.equal(failed, true)
    assert.match(text, /^unauthorized: This API key was revoked\. .*\n.*Ask the user for another one/)
  }
  assert.equal((await listToolNames(agent)).length, 10)
})

test('stdio: an unreachable server is reported, with different hints for reads and writes', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const agent = await connectAgent(t, 'stdio', { url: server.url, apiKey: server.key.token })
  assert.equal((await agent.call('get_workspace')).failed, false)
  await server.stop()
  const read = await agent.call('get_workspace')
  assert.equal(read.failed, true)
  assert.match(
    read.text,
    /^unreachable: http:\/\/127\.0\.0\.1:\d+ cannot be reached: .*\n.*check that the server is running/,
  )
  assert.match((await agent.call('create_api_key')).text, /^unreachable: .*\nThe call may have succeeded/)
  const closing = await agent.call('close_tunnel', { id: 'tun_0000000000' })
  assert.match(closing.text, /^unreachable: .*\nThe call may have succeeded: check with list_tunnels before/)
})
