// frp's server plugin and sish's authentication hook, with the payloads that those programs send.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSecret } from '../../src/credentials/secret.ts'
import { revoke } from '../../src/domain/keys.ts'
import { provision } from '../../src/domain/workspaces.ts'
import { createMigratedDatabase, engines } from '../support/databases.ts'
import { run, startServing } from '../support/process.ts'
import { addEdge, addWorkspace, operator, serve, type TestServer } from '../support/server.ts'

const post = (server: { url: string }, path: string, body: unknown) =>
  fetch(server.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-frp-reqid': 'b3c2' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })

const ALLOWED = { reject: false, reject_reason: '', unchange: true }

const userOf = (token: string | undefined) => ({
  user: 'laptop',
  metas: token === undefined ? null : { token },
  run_id: '0d1f7a2b9c3e4f56',
})

const login = (token: string | undefined) => ({
  version: '0.61.0',
  hostname: 'laptop',
  os: 'linux',
  arch: 'arm64',
  user: 'laptop',
  privilege_key: '5f4dcc3b5aa765d61d8327deb882cf99',
  timestamp: 1_763_200_000,
  run_id: '',
  pool_count: 1,
  metas: token === undefined ? null : { token },
  client_spec: {},
  client_address: '203.0.113.7:52114',
})

const proxy = (token: string, more: object) => ({
  user: userOf(token),
  proxy_name: 'laptop.web',
  proxy_type: 'http',
  use_encryption: false,
  use_compression: false,
  bandwidth_limit: '',
  bandwidth_limit_mode: 'client',
  group: '',
  group_key: '',
  ...more,
})

/** A request as frps sends it: the operation is also in the query. */
const callFrp = (server: { url: string }, credential: string) => async (op: string, content: unknown) => {
  const path = `/edge/frp/${credential}?version=0.1.0&op=${op}`
  const response = await post(server, path, { version: '0.1.0', op, content })
  assert.equal(response.status, 200)
  const result = (await response.json()) as { reject: boolean; reject_reason: string; unchange: boolean }
  const { reject, reject_reason, unchange } = result
  assert.deepEqual([typeof reject, typeof reject_reason, typeof unchange], ['boolean', 'string', 'boolean'])
  return result
}

async function prepare(server: TestServer) {
  const edge = await addEdge(server, 'frp-1')
  const other = await addWorkspace(server, 'other')
  const { slug } = server.workspace
  const base = `${slug}.${server.services.tunnelDomain}`
  return { edge, other, slug, base, key: server.key, call: callFrp(server, edge.token) }
}

for (const engine of engines) {
  test(`${engine}: frp accepts a valid key until it is revoked`, async (t) => {
    const server = await serve(t, { engine })
    const { key, other, call } = await prepare(server)
    const later = {
      Ping: { user: userOf(key.token), timestamp: 1_763_200_010, privilege_key: '' },
      NewWorkConn: { user: userOf(key.token), run_id: '0d1f', timestamp: 0, privilege_key: '' },
      NewUserConn: {
        user: userOf(key.token),
        proxy_name: 'laptop.web',
        proxy_type: 'https',
        remote_addr: '198.51.100.4:40000',
      },
    }
    assert.deepEqual(await call('Login', login(key.token)), ALLOWED)
    for (const [op, content] of Object.entries(later)) assert.deepEqual(await call(op, content), ALLOWED, op)
    assert.deepEqual(await call('CloseProxy', { user: userOf(key.token), proxy_name: 'laptop.web' }), ALLOWED)
    const reasons = {
      none: (await call('Login', login(undefined))).reject_reason,
      empty: (await call('Login', login(''))).reject_reason,
      mistyped: (await call('Login', login('adit_nonsense'))).reject_reason,
      unknown: (await call('Login', login(createSecret('key', server.services.random)))).reject_reason,
      unready: (await call('Login', login(other.key.token))).reject_reason,
    }
    assert.match(reasons.none, /metadatas\.token/)
    assert.equal(reasons.empty, reasons.none)
    assert.match(reasons.mistyped, /Malformed API key/)
    assert.match(reasons.unknown, /Unknown API key/)
    assert.match(reasons.unready, /"other" is not provisioned/)
    await provision(server.services, operator, 'other')
    assert.deepEqual(await call('Login', login(other.key.token)), ALLOWED)
    await revoke({ ...server.services, actor: operator, workspaceId: server.workspace.id }, key.id)
    for (const [op, content] of Object.entries({ Login: login(key.token), ...later })) {
      const { reject, reject_reason } = await call(op, content)
      assert.ok(reject, op)
      assert.match(reject_reason, /revoked/)
    }
  })

  test(`${engine}: an frp proxy gets host names of its workspace and no others`, async (t) => {
    const server = await serve(t, { engine })
    const { key, base, call } = await prepare(server)
    const content = proxy(key.token, { subdomain: 'my-app', custom_domains: null, locations: null })
    assert.deepEqual(await call('NewProxy', content), {
      reject: false,
      reject_reason: '',
      unchange: false,
      content: { ...content, subdomain: '', custom_domains: [`my-app.${base}`] },
    })
    const full = proxy(key.token, { custom_domains: [`my-app.${base}`, `second.${base}`] })
    assert.deepEqual(await call('NewProxy', full), ALLOWED)
    const rejected: [object, RegExp][] = [
      [{ custom_domains: ['my-app.other.localhost'] }, /is not a host name of the workspace/],
      [{ custom_domains: [`my-app.${base}`, 'example.com'] }, /example\.com/],
      [{ custom_domains: [base] }, /is not a host name/],
      [{ custom_domains: [`*.${base}`] }, /is not a host name/],
      [{ custom_domains: [`a.b.${base}`] }, /is not a host name/],
      [{ custom_domains: [`evil${base}`] }, /is not a host name/],
      [{ custom_domains: [`My-App.${base}`] }, /is not a host name/],
      [{ custom_domains: [7] }, /is not a host name/],
      [{ custom_domains: 'my-app' }, /Malformed proxy/],
      [{ subdomain: 'my-app.other' }, /Invalid subdomain/],
      [{ subdomain: '*' }, /Invalid subdomain/],
      [{ subdomain: '' }, /Missing host name/],
      [{ proxy_type: 'tcp', remote_port: 6000 }, /Unsupported proxy type/],
      [{ proxy_type: 'udp', remote_port: 6000, subdomain: 'my-app' }, /Unsupported proxy type/],
    ]
    for (const [more, reason] of rejected) {
      const { reject, reject_reason } = await call('NewProxy', proxy(key.token, more))
      assert.ok(reject, JSON.stringify(more))
      assert.match(reject_reason, reason)
    }
  })

  test(`${engine}: every response to frp is 200, also to an invalid edge or request`, async (t) => {
    const server = await serve(t, { engine })
    const { edge, key, call } = await prepare(server)
    assert.match(
      (await callFrp(server, key.token)('Login', login(key.token))).reject_reason,
      /edge credential/,
    )
    for (const op of ['', 'Logout', '__proto__']) assert.ok((await call(op, login(key.token))).reject)
    for (const content of [
      null,
      [],
      'x',
      { metas: 'x' },
      { metas: { token: 5 } },
      { metas: { token: 'x'.repeat(300) } },
    ])
      assert.ok((await call('Login', content)).reject)
    for (const body of ['', 'null', '[]', '{', `{"op":"Login","content":"${'x'.repeat(20_000)}"}`]) {
      const response = await post(server, `/edge/frp/${edge.token}`, body)
      assert.equal(response.status, 200, body.slice(0, 20))
      assert.equal(((await response.json()) as { reject: boolean }).reject, true)
    }
  })

  test(`${engine}: sish accepts a valid key, and only for its workspace`, async (t) => {
    const server = await serve(t, { engine })
    const { edge, key, other, slug } = await prepare(server)
    const status = async (body: unknown, credential = edge.token) =>
      (await post(server, `/edge/sish/${credential}`, body)).status
    const remote_addr = '203.0.113.7:52114'
    for (const user of [slug, 'root', 'unrelated.user'])
      assert.equal(await status({ password: key.token, user, remote_addr }), 200, user)
    for (const user of ['other', 'OTHER', 'x.other', 'other.x', 'other.', 'a b', 'a/b', 'a:80', 'é', ''])
      assert.equal(await status({ password: key.token, user, remote_addr }), 403, user)
    assert.equal(await status({ password: other.key.token, user: 'other', remote_addr }), 403)
    await provision(server.services, operator, 'other')
    assert.equal(await status({ password: other.key.token, user: 'other', remote_addr }), 200)
    for (const password of ['', 'adit_nonsense', edge.token])
      assert.equal(await status({ password, user: slug, remote_addr }), 401, password)
    assert.equal(await status({ user: slug, remote_addr }), 400)
    assert.equal(await status({ password: key.token, user: slug, remote_addr }, key.token), 401)
    await revoke({ ...server.services, actor: operator, workspaceId: server.workspace.id }, key.id)
    assert.equal(await status({ password: key.token, user: slug, remote_addr }), 401)
  })
}

test('a credential in a path is never logged, however the path continues or is encoded', async (t) => {
  const env = { ADIT_DATABASE_URL: await createMigratedDatabase(t, 'sqlite') }
  const server = await startServing(t, env)
  const credential = (await run(t, ['admin', 'edge', 'create', 'frp-1'], env)).stdout.trim()
  const bare = credential.slice('adit_edge_'.length)
  for (const path of [
    credential,
    `${credential}/more`,
    credential.replace('_', '%5F'),
    `x${credential}`,
    `%61dit_edge%5f${bare}`,
  ])
    for (const kind of ['frp', 'sish', 'other']) {
      await post(server, `/edge/${kind}/${path}`, { version: '0.1.0', op: 'Login', content: login('adit_x') })
      await post(server, `/edge/${kind}/${path}`, '{')
    }
  server.child.kill('SIGTERM')
  const { stderr } = await server.ended
  assert.ok(stderr.includes('/edge/frp/:credential'))
  assert.deepEqual(
    stderr.split('\n').filter((line) => line.includes(bare.slice(0, 20))),
    [],
  )
})
