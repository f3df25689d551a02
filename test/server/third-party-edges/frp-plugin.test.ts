// frp's server plugin, with the requests that frps sends. frp.test.ts has the real programs.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSecret } from '../../../src/lib/credentials/secret.ts'
import { createKey, revoke } from '../../../src/server/domain/keys/lifecycle.ts'
import { provision } from '../../../src/server/domain/workspaces/manage.ts'
import {
  addEdge,
  addWorkspace,
  openTestServices,
  operator,
  serve,
  serveThroughRelay,
  type TestServer,
} from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import {
  ALLOWED,
  callFrp,
  login,
  postJson,
  proxy,
  sendFrp,
  userOf,
} from '../../support/edges/frp-payloads.ts'
import { until } from '../../support/until.ts'

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
        proxy_name: 'acme.web',
        proxy_type: 'https',
        remote_addr: '198.51.100.4:40000',
      },
    }
    assert.deepEqual(await call('Login', login(key.token)), ALLOWED)
    for (const [op, content] of Object.entries(later)) assert.deepEqual(await call(op, content), ALLOWED, op)
    assert.deepEqual(await call('CloseProxy', { user: userOf(key.token), proxy_name: 'acme.web' }), ALLOWED)
    const reasons = {
      none: (await call('Login', login(undefined))).reject_reason,
      empty: (await call('Login', login(''))).reject_reason,
      mistyped: (await call('Login', login('adit_nonsense'))).reject_reason,
      unknown: (await call('Login', login(createSecret('key', server.services.random)))).reject_reason,
      unready: (await call('Login', login(other.key.token, 'other'))).reject_reason,
    }
    assert.match(reasons.none, /metadatas\.token/)
    assert.equal(reasons.empty, reasons.none)
    assert.match(reasons.mistyped, /Malformed API key/)
    assert.match(reasons.unknown, /Unknown API key/)
    assert.match(reasons.unready, /"other" is not provisioned/)
    await provision(server.services, operator, 'other')
    assert.deepEqual(await call('Login', login(other.key.token, 'other')), ALLOWED)
    await revoke(server.ctx, key.id)
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
    const hosts = [`my-app.${base}`, `second.${base}`]
    const full = proxy(key.token, { custom_domains: hosts })
    assert.deepEqual((await call('NewProxy', full)).content, { ...full, subdomain: '' })
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

  test(`${engine}: clients, proxies and groups of frp are named by workspace`, async (t) => {
    const server = await serve(t, { engine })
    const { key, call } = await prepare(server)
    for (const user of ['acme', 'acme.laptop'])
      assert.deepEqual(await call('Login', login(key.token, user)), ALLOWED, user)
    for (const user of ['', null, 5, 'other', 'acme2', 'Acme', '.acme'])
      assert.match((await call('Login', login(key.token, user))).reject_reason, /^Set user = "acme"/)
    for (const proxy_name of ['web', 'other.web', 'acme', 'acme2.web', 'Acme.web', '', undefined, 7]) {
      const content = proxy(key.token, { proxy_name, subdomain: 'my-app' })
      assert.match((await call('NewProxy', content)).reject_reason, /begin with "acme\.".*user = "acme"/)
    }
    const grouped = proxy(key.token, { subdomain: 'my-app', group: 'web', group_key: 'x' })
    const { content } = await call('NewProxy', grouped)
    assert.equal(content?.group, 'acme.web')
  })

  test(`${engine}: every decision for frp is 200, also to an invalid edge or request`, async (t) => {
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
      const response = await postJson(server, `/edge/frp/${edge.token}`, body)
      assert.equal(response.status, 200, body.slice(0, 20))
      assert.equal(((await response.json()) as { reject: boolean }).reject, true)
    }
  })
}

test('a Ping of frp waits for a database that is unreachable, a Login gets 503', async (t) => {
  const { server, relay, database } = await serveThroughRelay(t)
  const { edge, key, call } = await prepare(server)
  const second = await createKey(server.ctx, { label: 'second' })
  const ping = (token: string) => call('Ping', { user: userOf(token), timestamp: 0, privilege_key: '' })
  for (const { token } of [key, second]) assert.deepEqual(await ping(token), ALLOWED)
  relay.cut()
  const loginStatus = async () => (await sendFrp(server, edge.token, 'Login', login(key.token))).status
  await until('the lease has expired', async () => (await loginStatus()) === 503)
  let responses = 0
  const pings = [key, second].map(async ({ token }) => {
    const decision = await ping(token)
    responses += 1
    return decision
  })
  const elsewhere = await openTestServices(t, 'postgres', { ADIT_DATABASE_URL: database })
  await revoke({ ...server.ctx, ...elsewhere.services }, second.id)
  await elsewhere.services.store.close()
  assert.equal(responses, 0)
  relay.mend()
  const [allowed, rejected] = await Promise.all(pings)
  assert.deepEqual(allowed, ALLOWED)
  assert.match(rejected?.reject_reason ?? '', /revoked/)
})

test('a server that stops does not wait for the database that a Ping of frp waits for', async (t) => {
  const { server, relay } = await serveThroughRelay(t)
  const { edge, key, call } = await prepare(server)
  assert.deepEqual(await call('Login', login(key.token)), ALLOWED)
  relay.cut()
  const send = (op: string, content: unknown) => sendFrp(server, edge.token, op, content)
  await until('the lease has expired', async () => (await send('Login', login(key.token))).status === 503)
  const startedAt = performance.now()
  const ping = send('Ping', { user: userOf(key.token) })
  await server.stop()
  const response = await ping
  assert.equal(response.status, 503)
  assert.deepEqual(Object.keys((await response.json()) as object), ['error', 'message'])
  assert.ok(performance.now() - startedAt < 9_000, 'shorter than a Ping may wait')
})
