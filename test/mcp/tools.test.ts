// The tools, and that their results match the declared schemas.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { Operation } from '../../src/contract/operation.ts'
import { type Variant, variants } from '../../src/contract/variants.ts'
import { workspaceOperations } from '../../src/contract/workspace/index.ts'
import { serve } from '../support/api/server.ts'
import { engines } from '../support/databases/create.ts'
import { insertRevokedKeys } from '../support/databases/many-keys.ts'
import { simulateEdge } from '../support/edges/connected-edge.ts'
import { tunnelOf } from '../support/edges/open-tunnels.ts'
import { connectAgent, listToolNames, transports } from './agent.ts'

const reading = [
  'get_workspace',
  'list_api_keys',
  'get_usage',
  'list_tunnels',
  'get_tunnel',
  'list_tunnel_names',
  'list_edges',
]
const writing = ['create_api_key', 'revoke_api_key', 'close_tunnel']
const readOnly = { readOnlyHint: true, openWorldHint: false }

const annotations: Record<string, object> = {
  ...Object.fromEntries(reading.map((name) => [name, readOnly])),
  create_api_key: { destructiveHint: false, idempotentHint: false, openWorldHint: false },
  revoke_api_key: { destructiveHint: true, idempotentHint: true, openWorldHint: false },
  close_tunnel: { destructiveHint: true, idempotentHint: true, openWorldHint: false },
}

const ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false, allErrors: true })
addFormats.default(ajv)

for (const engine of engines)
  for (const transport of transports)
    for (const variant of ['A', 'B'] as const satisfies Variant[]) {
      const where = `${engine}, ${transport}, variant ${variant}`

      test(`${where}: every tool is listed, can be called and returns what its schema declares`, async (t) => {
        const server = await serve(t, { engine, env: { ADIT_API_VARIANT: variant } })
        const tunnel = tunnelOf(server)
        await simulateEdge(t, server, 'fra-1', [tunnel])
        const agent = await connectAgent(t, transport, { url: server.url, apiKey: server.key.token })
        const { tools } = await agent.client.listTools()
        const expected = variant === 'A' ? [...reading, ...writing] : reading
        assert.deepEqual(tools.map(({ name }) => name).sort(), expected.toSorted())

        let created = ''
        const inputs: Record<string, () => Record<string, unknown>> = {
          get_usage: () => ({ days: 7 }),
          list_api_keys: () => ({ limit: 1 }),
          create_api_key: () => ({ label: 'by an agent' }),
          revoke_api_key: () => ({ id: created }),
          list_tunnels: () => ({ name: tunnel.name }),
          get_tunnel: () => ({ id: tunnel.id }),
          close_tunnel: () => ({ id: tunnel.id }),
        }
        for (const name of expected) {
          const tool = tools.find((each) => each.name === name)
          assert.ok(tool?.outputSchema)
          assert.deepEqual(tool.annotations, annotations[name])
          assert.ok(tool.title && tool.description)
          const input = inputs[name]?.() ?? {}
          assert.ok(ajv.validate(tool.inputSchema, input), `${name}: ${ajv.errorsText()}`)
          const { failed, text, data } = await agent.call(name, input)
          assert.equal(failed, false, text)
          assert.ok(
            ajv.validate<{ id: string }>(tool.outputSchema as object, data),
            `${name}: ${ajv.errorsText()}`,
          )
          const [summary = '', json = ''] = text.split('\n\n')
          assert.match(summary, /^[^{]+\.$/)
          assert.deepEqual(JSON.parse(json), data)
          if (name === 'create_api_key') created = data.id
        }
      })
    }

for (const variant of ['A', 'B'] as const) {
  test(`variant ${variant}: the tools and their arguments match the contract`, async (t) => {
    const server = await serve(t, { engine: 'sqlite', env: { ADIT_API_VARIANT: variant } })
    const agent = await connectAgent(t, 'http', { url: server.url, apiKey: server.key.token })
    const reads = ({ method }: Operation) => method === 'GET'
    const ofWorkspace = (workspaceOperations as readonly Operation[]).filter(
      (operation) => variant === 'A' || reads(operation),
    )
    const operations = [...(variants[variant] as readonly Operation[]), ...ofWorkspace].filter(
      ({ tool }) => tool,
    )
    assert.deepEqual(
      await listToolNames(agent),
      operations.map(({ tool }) => tool?.name),
    )
    const { tools } = await agent.client.listTools()
    for (const [index, { params, query, body }] of operations.entries()) {
      const { inputSchema } = tools[index] as (typeof tools)[number]
      const names = [params, query, body].flatMap((part) => Object.keys(part?.properties ?? {}))
      assert.deepEqual(Object.keys(inputSchema.properties ?? {}), names)
      assert.deepEqual(inputSchema.required, Object.keys(params?.properties ?? {}))
      assert.equal(inputSchema.additionalProperties, false)
    }
    assert.doesNotMatch(JSON.stringify(tools), /x-rule/)
  })
}

test('pages of a long list of keys follow each other without gaps', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  for (const label of ['second', 'third']) await server.post('/tokens', { label })
  const agent = await connectAgent(t, 'http', { url: server.url, apiKey: server.key.token })
  const first = await agent.call('list_api_keys', { limit: 2 })
  const rest = await agent.call('list_api_keys', { limit: 2, cursor: first.data.tokens.at(-1).id })
  const whole = await agent.call('list_api_keys')
  assert.deepEqual([...first.data.tokens, ...rest.data.tokens], whole.data.tokens)
  assert.equal(rest.data.tokens.length, 1)
})

for (const transport of transports)
  test(`${transport}: a call returns 100 keys by default, and the cursor for more`, async (t) => {
    const server = await serve(t, { engine: 'sqlite' })
    const revoked = await insertRevokedKeys(server.services.store, server.workspace.id, 1_200)
    const ids = [server.key.id, ...revoked]
    const agent = await connectAgent(t, transport, { url: server.url, apiKey: server.key.token })
    const keyIds = (data: { tokens: { id: string }[] }) => data.tokens.map(({ id }) => id)
    const first = await agent.call('list_api_keys')
    assert.deepEqual(keyIds(first.data), ids.slice(0, 100))
    assert.match(first.text, new RegExp(`There may be more: call again with cursor "${ids[99]}"\\.\\n`))
    const next = await agent.call('list_api_keys', { cursor: ids[99] })
    assert.deepEqual(keyIds(next.data), ids.slice(100, 200))
    const large = await agent.call('list_api_keys', { cursor: ids[199], limit: 1000 })
    assert.deepEqual(keyIds(large.data), ids.slice(200, 1_200))
    const last = await agent.call('list_api_keys', { cursor: ids[1_199], limit: 1000 })
    assert.deepEqual(keyIds(last.data), ids.slice(1_200))
    assert.doesNotMatch(last.text, /There may be more/)
  })
