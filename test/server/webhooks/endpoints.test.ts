// Owners manage webhook endpoints; secrets are shown once and rotated with an overlap.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { WEBHOOKS_MAX } from '../../../src/contract/limits.ts'
import { DAY_MS } from '../../../src/lib/time.ts'
import { createKey } from '../../../src/server/domain/keys/lifecycle.ts'
import { addMember, serveWithOwner } from '../../support/accounts/users.ts'
import { addWorkspace, serve } from '../../support/api/server.ts'
import { createFolder, engines } from '../../support/databases/create.ts'
import { setRows } from '../../support/databases/rows.ts'
import { responses, startReceiver } from '../../support/events/webhook-receiver.ts'
import { addEndpoint, deliveriesOf } from '../../support/events/webhooks.ts'
import { pluck } from '../../support/pluck.ts'
import { freePort } from '../../support/processes/ports.ts'
import { root } from '../../support/processes/process.ts'
import { startProgram } from '../../support/processes/program.ts'
import { until } from '../../support/until.ts'

const WEBHOOKS = '/workspaces/acme/webhooks'
const env = { ADIT_WEBHOOK_PRIVATE_NETWORKS: '127.0.0.0/8' }

for (const engine of engines) {
  const serving = serve({ after }, { engine, env })
  const owner = serving.then((server) => addMember(server, 'Ann', 'owner'))
  const createKeyIn = async () => createKey((await serving).ctx, { label: 'ci' })

  test(`${engine}: a delivery is signed with the new and the previous secret during the overlap`, async (t) => {
    const { services } = await serving
    const ann = await owner
    const receiver = await startReceiver(t)
    const created = await ann.post(WEBHOOKS, { url: receiver.url, events: ['key.created'] })
    assert.equal(created.status, 201)
    assert.equal(created.headers.get('cache-control'), 'no-store')
    const { id, secret } = created.json
    receiver.secret = secret
    const received = async () => {
      const before = receiver.received.length
      await createKeyIn()
      await until('it arrives', () => receiver.received.length > before)
      return receiver.received.at(-1)
    }
    assert.equal((await received())?.body.data.key.label, 'ci')
    const rotated = (await ann.post(`${WEBHOOKS}/${id}/secret`, { overlap: '24h' })).json
    // The receiver still has the old secret.
    const both = await received()
    const signatures = String(both?.headers['webhook-signature']).split(' ')
    assert.equal(signatures.length, 2)
    new Webhook(rotated.secret).verify(JSON.stringify(both?.body), both?.headers as Record<string, string>)
    receiver.secret = (await ann.post(`${WEBHOOKS}/${id}/secret`, { overlap: 'none' })).json.secret
    assert.equal(String((await received())?.headers['webhook-signature']).split(' ').length, 1)
    // Neither the list nor the database has a secret.
    const [row] = await services.store.db.selectFrom('webhook_endpoints').selectAll().execute()
    const listed = JSON.stringify([row, (await ann.get(WEBHOOKS)).json])
    for (const each of [secret, rotated.secret, receiver.secret])
      assert.ok(!listed.includes(each.slice('whsec_'.length)))
    await ann.remove(`${WEBHOOKS}/${id}`)
  })

  test(`${engine}: a previous secret that was rotated while a clock was ahead does not sign for longer than an overlap`, async (t) => {
    const { services } = await serving
    const ann = await owner
    const receiver = await startReceiver(t)
    const { id } = (await ann.post(WEBHOOKS, { url: receiver.url, events: ['key.created'] })).json
    receiver.secret = (await ann.post(`${WEBHOOKS}/${id}/secret`, { overlap: '7d' })).json.secret
    const countSignatures = async (previous_secret_until: number) => {
      await setRows(services, 'webhook_endpoints', { previous_secret_until }, { id })
      const before = receiver.received.length
      await createKeyIn()
      await until('it arrives', () => receiver.received.length > before)
      return String(receiver.received.at(-1)?.headers['webhook-signature']).split(' ').length
    }
    assert.equal(await countSignatures(Date.now() + 6 * DAY_MS), 2)
    assert.equal(await countSignatures(Date.now() + 400 * DAY_MS), 1)
    assert.equal(await countSignatures(Date.now() - 1_000), 1)
    await ann.remove(`${WEBHOOKS}/${id}`)
  })

  test(`${engine}: a rotation applies to the next delivery, also of a queue that is being sent`, async (t) => {
    const ann = await owner
    const open: (() => void)[] = []
    const receiver = await startReceiver(t, (response) => open.push(() => responses.ok(response)))
    const { id } = (await ann.post(WEBHOOKS, { url: receiver.url, events: ['key.created'] })).json
    for (let count = 0; count < 2; count++) await createKeyIn()
    await until('the first is sent', () => open.length === 1)
    receiver.secret = (await ann.post(`${WEBHOOKS}/${id}/secret`, { overlap: 'none' })).json.secret
    receiver.respond = responses.ok
    for (const respond of open) respond()
    await until('both arrive', () => receiver.unique().length === 2)
    assert.equal(receiver.rejected, 0)
    await ann.remove(`${WEBHOOKS}/${id}`)
  })

  test(`${engine}: a rotation with an overlap replaces a secret that cannot be decrypted`, async (t) => {
    const { services, workspace } = await serving
    const ann = await owner
    const receiver = await startReceiver(t)
    const endpoint = { url: receiver.url, secret: 'of another server' }
    const id = await addEndpoint(services, workspace.id, endpoint)
    await createKeyIn()
    await until('it fails', async () => (await deliveriesOf(services, id))[0]?.attempts === 1)
    assert.match((await deliveriesOf(services, id))[0]?.error ?? '', /cannot be decrypted/)
    receiver.secret = (await ann.post(`${WEBHOOKS}/${id}/secret`, { overlap: '24h' })).json.secret
    await until('it arrives', () => receiver.received.length === 1)
    assert.equal(receiver.rejected, 0)
    await ann.remove(`${WEBHOOKS}/${id}`)
  })

  test(`${engine}: only owners manage webhooks, and those of another workspace do not exist`, async () => {
    const server = await serving
    const ann = await owner
    const bob = await addMember(server, 'Bob', 'admin')
    assert.equal((await bob.get(WEBHOOKS)).status, 403)
    assert.equal((await bob.post(WEBHOOKS, { url: 'https://hooks.example.com' })).status, 403)
    const other = await addWorkspace(server, 'other')
    for (const id of ['whk_unknown', await addEndpoint(server.services, other.workspace.id)]) {
      for (const path of ['', '/secret', '/test', '/deliveries/1/resend']) {
        const body = path === '/secret' ? { overlap: 'none' } : {}
        assert.equal((await ann.post(`${WEBHOOKS}/${id}${path}`, body)).status, 404, path)
      }
      assert.equal((await ann.get(`${WEBHOOKS}/${id}/deliveries`)).status, 404)
      assert.equal((await ann.remove(`${WEBHOOKS}/${id}`)).status, 404)
    }
  })

  test(`${engine}: URLs, events and the number of endpoints are checked, and everything is audited`, async () => {
    const ann = await owner
    const rejected = [
      { url: 'ftp://hooks.example.com' },
      { url: 'https://user:password@hooks.example.com' },
      { url: 'https://hooks.example.com/#fragment' },
      { url: 'https://' },
      { url: 'https://10.0.0.1' },
      { url: 'https://[fd00:ec2::254]/latest' },
      { url: 'http://0xa9fea9fe/' },
      { url: `https://hooks.example.com/${'x'.repeat(1_000)}` },
      { url: 'https://hooks.example.com', events: ['key.unknown'] },
      { url: 'https://hooks.example.com', events: ['webhook.test'] },
      { url: 'https://hooks.example.com', description: 'a\u0000b' },
    ]
    for (const body of rejected)
      assert.equal((await ann.post(WEBHOOKS, body)).status, 400, JSON.stringify(body))
    const url = 'https://hooks.example.com'
    const ids: string[] = []
    for (let count = 0; count < WEBHOOKS_MAX; count++) ids.push((await ann.post(WEBHOOKS, { url })).json.id)
    const full = await ann.post(WEBHOOKS, { url })
    assert.equal(full.status, 409)
    assert.match(full.json.message, /10 webhook endpoints/)
    const [id = ''] = ids
    await ann.post(`${WEBHOOKS}/${id}`, { url: `${url}/other`, events: ['key.created'], enabled: false })
    assert.equal((await ann.post(`${WEBHOOKS}/${id}/test`)).status, 409)
    for (const each of ids) await ann.remove(`${WEBHOOKS}/${each}`)
    const { entries } = (await ann.get('/workspaces/acme/audit?limit=100')).json
    const actions = pluck(
      entries.filter(({ target }: { target: { id: string } }) => target.id === id),
      'action',
    )
    assert.deepEqual(actions, ['webhook.deleted', 'webhook.changed', 'webhook.disabled', 'webhook.created'])
  })
}

test('members and admins do not see the path of a URL, which may have a secret of the receiver', async (t) => {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite', env })
  const { id } = (await ann.post(WEBHOOKS, { url: 'https://hooks.example.com/first-secret' })).json
  await ann.post(`${WEBHOOKS}/${id}`, { url: 'https://other.example.com/?key=second-secret' })
  await setRows(
    server.services,
    'webhook_endpoints',
    { disabled_at: Date.now(), disabled_reason: 'gone' },
    { id },
  )
  const admin = await addMember(server, 'Bob', 'admin')
  const notices = await admin.get('/workspaces/acme/notices')
  assert.equal(notices.json.notices[0]?.webhook.url, 'https://other.example.com/…')
  const member = await addMember(server, 'Cleo', 'member')
  const audit = await member.get('/workspaces/acme/audit')
  const [changed, created] = audit.json.entries.filter(
    ({ target }: { target: { id: string } }) => target.id === id,
  )
  assert.deepEqual(changed.changes.url, ['https://hooks.example.com/…', 'https://other.example.com/…'])
  assert.deepEqual(created.changes.url, [null, 'https://hooks.example.com/…'])
  for (const { text } of [notices, audit]) assert.doesNotMatch(text, /(first|second)-secret/)
})

test('the example of a receiver in the documentation accepts deliveries', async (t) => {
  const [, example] = /```js\n([\s\S]*?)```/.exec(readFileSync(join(root, 'docs/webhooks.md'), 'utf8')) ?? []
  const folder = createFolder(t)
  const file = join(folder, 'receiver.mjs')
  writeFileSync(
    file,
    (example ?? '').replace("'standardwebhooks'", `'${import.meta.resolve('standardwebhooks')}'`),
  )
  const { ann } = await serveWithOwner(t, { engine: 'sqlite', env })
  const port = await freePort()
  const { id, secret } = (await ann.post(WEBHOOKS, { url: `http://127.0.0.1:${port}/` })).json
  const { output, waitForPort } = startProgram(t, process.execPath, [file], {
    env: { ...process.env, WEBHOOK_SECRET: secret, PORT: String(port) },
  })
  await waitForPort(port)
  assert.equal((await fetch(`http://127.0.0.1:${port}`, { method: 'POST' })).status, 401)
  await ann.post(`${WEBHOOKS}/${id}/test`)
  await until('it is delivered', async () => (await ann.get(WEBHOOKS)).json.endpoints[0].pending === 0)
  assert.match(output(), /^webhook\.test/m)
})
