// Sign-in of agents: a user approves, the code is exchanged for a key, and what it may do.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { DAY_MS } from '../../../src/lib/time.ts'
import {
  approve,
  approveRequest,
  CALLBACK,
  createRequest,
  exchange,
  readRedirect,
  registerClient,
  signInAgent,
} from '../../support/accounts/agents.ts'
import { startDevice } from '../../support/accounts/devices.ts'
import { addMember, serveWithOwner } from '../../support/accounts/users.ts'
import { addNode, addWorkspace } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { readRows, setRows } from '../../support/databases/rows.ts'
import { connectAgent, listToolNames } from '../agent.ts'

const KEY_DAYS = 30

async function setUp(engine: (typeof engines)[number], env = {}) {
  const clock = { now: Date.now() }
  const deployment = await serveWithOwner({ after }, { engine, clock: () => clock.now, env })
  return { clock, ...deployment }
}

const deployments = await Promise.all(engines.map((engine) => setUp(engine)))
const variantB = await setUp('sqlite', { ADIT_API_VARIANT: 'B' })

for (const [index, engine] of engines.entries()) {
  const { server, ann, clock } = deployments[index] as Awaited<ReturnType<typeof setUp>>

  test(`${engine}: an agent that a user approves gets a key, with an entry of its own in the list`, async (t) => {
    const clientId = await registerClient(server.url, CALLBACK, 'Claude\u202e <b>')
    const { query, form } = createRequest(server.url, clientId)
    const read = await ann.post('/agents/read', { request: query })
    assert.deepEqual(read.json, {
      name: 'Claude <b>',
      host: null,
      target: 'agent.example.com',
      isLocal: false,
      problem: null,
      workspaces: [{ slug: 'acme', name: 'Acme', obstacle: null, mayManageKeys: true }],
    })
    const approved = await approve(ann, query)
    assert.equal(approved.headers.get('cache-control'), 'no-store')
    const { url, code, state, iss, app } = readRedirect(approved)
    assert.equal(url.origin + url.pathname, 'https://agent.example.com/callback')
    assert.deepEqual([app, state, iss], ['1', 'state of the agent', server.url])
    const { status, json, headers } = await exchange(server.url, { ...form, code })
    assert.equal(status, 200)
    assert.equal(headers.get('cache-control'), 'no-store')
    const { access_token: token, ...rest } = json
    assert.deepEqual(rest, { token_type: 'Bearer', expires_in: KEY_DAYS * 86_400, scope: 'mcp' })

    const agent = await connectAgent(t, 'http', { url: server.url, apiKey: token })
    assert.equal((await agent.call('get_workspace')).data.slug, 'acme')
    const { keys } = (await ann.get('/workspaces/acme/keys?search=Claude')).json
    assert.partialDeepStrictEqual(keys, [
      {
        label: 'Claude <b>',
        agent: { host: 'agent.example.com', managesKeys: false },
        user: { name: 'Ann', isYou: true },
        createdBy: { kind: 'user', name: 'Ann' },
        lastFour: token.slice(-4),
        state: 'active',
        expiresAt: new Date(Math.ceil((clock.now + KEY_DAYS * DAY_MS) / 1_000) * 1_000).toISOString(),
      },
    ])
    const entries = await readRows(server.services, 'audit_log', { target_id: keys[0].id })
    assert.deepEqual(entries.map(({ action, actor_id, address }) => [action, actor_id, address]).sort(), [
      ['agent.approved', ann.id, '127.0.0.1'],
      ['key.created', ann.id, '127.0.0.1'],
    ])
  })

  test(`${engine}: neither the code nor the key is stored`, async () => {
    const { token, form } = await signInAgent(server.url, ann, { name: 'not stored' })
    for (const table of ['api_keys', 'audit_log', 'change_log', 'idempotent_responses'] as const) {
      const stored = JSON.stringify(await readRows(server.services, table))
      for (const secret of [token, form.code as string]) assert.ok(!stored.includes(secret), table)
    }
  })

  test(`${engine}: an agent manages keys only if the user has allowed it, and only as far as the user may`, async (t) => {
    const mia = await addMember(server, 'Mia', 'member')
    const connect = async (managesKeys: boolean) => {
      const { token, json } = await signInAgent(server.url, mia, { managesKeys })
      return { json, ...(await connectAgent(t, 'http', { url: server.url, apiKey: token })) }
    }
    const reader = await connect(false)
    assert.equal(reader.json.scope, 'mcp')
    const tools = await listToolNames(reader)
    assert.ok(tools.includes('list_api_keys') && !tools.includes('create_api_key'))
    const refused = await reader.call('create_api_key', { label: 'escalated' })
    assert.match(refused.text, /not allowed to manage API keys/)
    assert.match((await reader.call('revoke_api_key', { id: server.key.id })).text, /not allowed to manage/)

    const manager = await connect(true)
    assert.equal(manager.json.scope, 'mcp manage-keys')
    const created = await manager.call('create_api_key', { label: 'by an agent' })
    assert.equal((await server.call('GET', '/workspace', { key: created.data.token })).status, 200)
    assert.ok((await manager.call('revoke_api_key', { id: server.key.id })).failed, 'not a key of the user')
    assert.ok(!(await manager.call('revoke_api_key', { id: created.data.id })).failed)

    const setPolicy = (change: object) =>
      setRows(server.services, 'workspaces', change, { id: server.workspace.id })
    await setPolicy({ keys_read_only_at: 1 })
    t.after(() => setPolicy({ keys_read_only_at: null }))
    assert.ok((await manager.call('create_api_key')).failed, 'the policy of that moment applies')
    const { query } = createRequest(server.url, await registerClient(server.url))
    const [choice] = (await mia.post('/agents/read', { request: query })).json.workspaces
    assert.equal(choice.mayManageKeys, false)
    assert.equal((await approve(mia, query, true)).status, 403)
  })

  test(`${engine}: the key expires, and within the maximum lifetime of the policy`, async (t) => {
    const { workspace } = await addWorkspace(server, `short-${engine}`)
    await setRows(server.services, 'workspaces', { key_days_max: 7 }, { id: workspace.id })
    const bob = await addMember(server, `Bob-${engine}`, 'owner', workspace.slug)
    const { json, token } = await signInAgent(server.url, bob, { workspace: workspace.slug })
    assert.ok(json.expires_in > 6.99 * 86_400 && json.expires_in <= 7 * 86_400, json.expires_in)
    const agent = await connectAgent(t, 'http', { url: server.url, apiKey: token })
    assert.equal((await agent.call('get_workspace')).data.slug, workspace.slug)
    await setRows(
      server.services,
      'api_keys',
      { expires_at: 1_000 },
      { label: 'Test agent', workspace_id: workspace.id },
    )
    const node = await addNode(t, server)
    await assert.rejects(connectAgent(t, 'http', { url: node.url, apiKey: token }))
  })

  test(`${engine}: a member without the right is told how to get it, and so is the agent`, async (t) => {
    const setPolicy = (change: object) =>
      setRows(server.services, 'workspaces', change, { id: server.workspace.id })
    await setPolicy({ key_creator_role: 'admin' })
    t.after(() => setPolicy({ key_creator_role: null }))
    const max = await addMember(server, 'Max', 'member')
    const { query } = createRequest(server.url, await registerClient(server.url))
    const [choice] = (await max.post('/agents/read', { request: query })).json.workspaces
    assert.match(choice.obstacle, /lets only admins and owners create API keys\. Ask one of them/)
    assert.equal((await approve(max, query)).status, 403)
    const denied = readRedirect(await max.post('/agents/deny', { request: query, workspace: 'acme' }))
    assert.deepEqual(
      [denied.error, denied.error_description, denied.iss],
      ['access_denied', choice.obstacle, server.url],
    )
  })

  test(`${engine}: the approval ends with the session and the membership of the user`, async () => {
    const endings: Record<string, (user: Awaited<ReturnType<typeof addMember>>) => Promise<unknown>> = {
      session: (user) => user.post('/sign-out'),
      membership: (user) => ann.remove(`/workspaces/acme/members/${user.id}`),
    }
    for (const [ending, end] of Object.entries(endings)) {
      const user = await addMember(server, `Ends-${ending}`, 'admin')
      const request = createRequest(server.url, await registerClient(server.url))
      const { form } = await approveRequest(user, request)
      const ended = await end(user)
      assert.equal((ended as { status: number }).status, 200, ending)
      const { status, json } = await exchange(server.url, form)
      assert.deepEqual([status, json.error], [400, 'invalid_grant'], ending)
      assert.match(json.error_description, /no longer valid/)
    }
  })
}

test('in variant B, admins approve agents that only read, and members are told to request a key', async (t) => {
  const { server, ann } = variantB
  const mia = await addMember(server, 'Mia', 'member')
  const { query } = createRequest(server.url, await registerClient(server.url))
  assert.equal((await approve(ann, query, true)).status, 403, 'keys do not manage keys')
  const { token } = await signInAgent(server.url, ann)
  const agent = await connectAgent(t, 'http', { url: server.url, apiKey: token })
  assert.ok(!(await listToolNames(agent)).includes('create_api_key'))
  assert.equal((await agent.call('get_workspace')).data.slug, 'acme')
  assert.equal((await approve(mia, query)).status, 403)
  const denied = readRedirect(await mia.post('/agents/deny', { request: query, workspace: 'acme' }))
  assert.equal(denied.error, 'access_denied')
  assert.match(String(denied.error_description), /Only admins and owners .* Request one from them/)
})

test('the token endpoint of the metadata also accepts device codes', async () => {
  const [{ server }] = deployments as [Awaited<ReturnType<typeof setUp>>]
  const { deviceCode } = await startDevice(server.url)
  const metadata = (await (await fetch(`${server.url}/.well-known/oauth-authorization-server`)).json()) as {
    token_endpoint: string
  }
  assert.equal(metadata.token_endpoint, `${server.url}/oauth/token`)
  const { json } = await exchange(server.url, {
    grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
    device_code: deviceCode,
  })
  assert.equal(json.error, 'authorization_pending')
})
