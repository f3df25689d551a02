// `adit mcp --allow-port` while the control plane cannot be reached from the agent's machine.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startRelay } from '../../support/network/relay.ts'
import { freePort } from '../../support/processes/ports.ts'
import { connectAgent, listToolNames } from '../agent.ts'
import { createSetting, readResult, startEcho, startShared } from './support.ts'

const shared = await startShared()

test('without the control plane, tools of this machine are listed and work, others say why they do not', async (t) => {
  const echo = await startEcho(t)
  const { access } = createSetting(t, shared)
  const url = `http://127.0.0.1:${await freePort()}`
  const agent = await connectAgent(t, 'stdio', { ...access(['--allow-port', String(echo.port)]), url })
  const { tools } = await agent.client.listTools()
  const descriptions = new Map(tools.map(({ name, description }) => [name, description]))
  assert.doesNotMatch(descriptions.get('open_local_tunnel') ?? '', /not available/i)
  assert.match(
    descriptions.get('get_workspace') ?? '',
    new RegExp(`^Not available when the tools were listed: ${url} cannot be reached.*It may work again`),
  )

  const opened = await agent.call('open_local_tunnel', { port: echo.port, name: 'offline' })
  assert.match(readResult(opened.text).url, /^http:\/\/offline\.acme\.localhost/)
  assert.equal((await agent.call('list_requests')).failed, false)
  assert.equal((await agent.call('close_local_tunnel', { port: echo.port })).failed, false)
  assert.match((await agent.call('get_workspace')).text, /^unreachable: /)
})

test('a tool that was listed without the control plane works once it can be reached', async (t) => {
  const echo = await startEcho(t)
  const { access } = createSetting(t, shared)
  const relay = await startRelay(t, shared.plane.url)
  relay.cut()
  const flags = ['--allow-port', String(echo.port)]
  const agent = await connectAgent(t, 'stdio', { ...access(flags), url: relay.url })
  const before = await listToolNames(agent)
  assert.ok(!before.includes('create_api_key'), 'variant B does not have it')
  relay.mend()
  assert.equal((await agent.call('get_workspace')).data.slug, 'acme')
  const after = new Set(await listToolNames(agent))
  assert.ok(after.has('create_api_key'))
  for (const name of before) assert.ok(after.has(name), name)
})
