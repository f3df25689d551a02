// The policy of a workspace: how it is set, and details of what it means. policy-surfaces.test.ts has the
// cases that are generated for everything that creates keys.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Operation } from '../../../src/contract/operation.ts'
import { variants } from '../../../src/contract/variants.ts'
import { DAY_MS } from '../../../src/lib/time.ts'
import { createKey } from '../../../src/server/domain/keys/lifecycle.ts'
import { type Policy, readPolicy } from '../../../src/server/domain/workspaces/policy.ts'
import { allOperations, callOperation, isRole } from '../../support/accounts/dashboard-operations.ts'
import { addMember, enableTwoFactor, PASSWORD, type TestBrowser } from '../../support/accounts/users.ts'
import { addNode, caller, operator, serve } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'

const OPEN: Policy = {
  keyDaysMax: null,
  keysManageKeys: true,
  keyCreators: 'member',
  twoFactorRequired: false,
}

const inDays = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString()

/** What `keysManageKeys: false` means for each operation of the public API. A new one needs an entry. */
const forbiddenToKeys: Record<(typeof variants)['A' | 'B'][number]['id'], boolean> = {
  'workspace.read': false,
  'tokens.list': false,
  'tokens.create': true,
  'tokens.revoke': true,
  'usage.read': false,
  'description.read': false,
}

for (const engine of engines) {
  test(`${engine}: policies for API keys`, async (t) => {
    const server = await serve(t, { engine })
    const olga = await addMember(server, 'Olga', 'owner')
    const adam = await addMember(server, 'Adam', 'admin')
    const set = async (policy: Partial<Policy>) => {
      const saved = await olga.post('/workspaces/acme/policy', { ...OPEN, ...policy })
      assert.equal(saved.status, 200, saved.text)
      assert.deepEqual((await adam.get('/workspaces/acme')).json.policy, { ...OPEN, ...policy })
    }

    await t.test(
      'the longest life of a key is counted from its creation, with a tolerance of a day',
      async () => {
        await set({ keyDaysMax: 30 })
        const long = await adam.post('/workspaces/acme/keys', { expiresAt: inDays(32) })
        assert.equal(long.status, 400)
        assert.match(long.json.details[0].message, /must not be more than 30 days from now, by the policy/)
        // Users choose the end of a day, in their time zone.
        const lastDay = await adam.post('/workspaces/acme/keys', { expiresAt: inDays(30.9) })
        assert.ok(Date.parse(lastDay.json.expiresAt) <= Date.now() + 30 * DAY_MS)
        const short = await adam.post('/workspaces/acme/keys', { expiresAt: inDays(1) })
        assert.ok(Date.parse(short.json.expiresAt) < Date.now() + 2 * DAY_MS)
        let now = Date.now()
        const clock = () => {
          now -= 1_500
          return now
        }
        const { ctx } = server
        assert.ok((await createKey({ ...ctx, clock })).expiresAt, 'although the clock is set back')
      },
    )

    await t.test('the operator needs force, and the audit log says so', async () => {
      await set({ keyDaysMax: 30 })
      const { ctx } = server
      await assert.rejects(createKey(ctx, { expiresAt: inDays(60) }), /Override the policy with --force/)
      const force = { ...ctx, actor: { ...operator, force: true } }
      assert.equal((await createKey(force)).expiresAt, null)
      assert.deepEqual(await newestDetails(olga.browser, 'key.created'), ['forced'])
      await createKey(force, { expiresAt: inDays(3) })
      assert.deepEqual(await newestDetails(olga.browser, 'key.created'), [null], 'nothing was overridden')
    })

    await t.test('admins revoke keys also if only owners create them', async () => {
      await set({ keyCreators: 'owner' })
      const { json: created } = await olga.post('/workspaces/acme/keys', {})
      assert.equal((await adam.remove(`/workspaces/acme/keys/${created.id}`)).status, 200)
    })

    await t.test('keys that may not manage keys can revoke themselves only', async () => {
      await set({})
      const { json: other } = await server.post('/tokens', { label: 'other' })
      await set({ keysManageKeys: false })
      for (const operation of variants.A as readonly Operation[]) {
        const path = operation.path.replace('{id}', other.id)
        const response = await server.call(operation.method, path)
        const isForbidden = forbiddenToKeys[operation.id as keyof typeof forbiddenToKeys]
        assert.equal(response.status, isForbidden ? 400 : 200, operation.id)
        if (!isForbidden) continue
        assert.equal(response.json.error, 'invalid_request')
        assert.match(response.json.details[0].message, /policy of this workspace does not let API keys/)
      }
      assert.equal((await server.call('DELETE', `/tokens/${other.id}`, { key: other.token })).status, 200)
    })

    await t.test('a change is audited with what changed', async () => {
      await set({})
      await set({ keyDaysMax: 7 })
      await set({ keyDaysMax: 7 })
      const { entries } = (await olga.get('/workspaces/acme/audit')).json
      const [newest] = entries
      assert.equal(newest.action, 'workspace.policy-changed')
      assert.deepEqual(newest.changes, { keyDaysMax: [null, 7] })
    })

    await t.test('rules that a request does not name stay as they are', async () => {
      await set({ keyDaysMax: 7 })
      const changed = await olga.post('/workspaces/acme/policy', { keyCreators: 'owner' })
      assert.deepEqual(changed.json, { ...OPEN, keyDaysMax: 7, keyCreators: 'owner' })
    })

    await t.test('invalid policies are rejected', async () => {
      for (const invalid of [{ keyDaysMax: 0 }, { keyDaysMax: 3651 }, { keyDaysMax: '7' }]) {
        const response = await olga.post('/workspaces/acme/policy', { ...OPEN, ...invalid })
        assert.deepEqual(response.json.details, [
          { path: '/body/keyDaysMax', message: 'must be a whole number from 1 to 3650, or null' },
        ])
      }
      assert.equal(
        (await olga.post('/workspaces/acme/policy', { ...OPEN, keyCreators: 'nobody' })).status,
        400,
      )
    })
  })

  test(`${engine}: a member without required two-factor authentication can only set it up`, async (t) => {
    const server = await serve(t, { engine })
    const olga = await addMember(server, 'Olga', 'owner')
    const adam = await addMember(server, 'Adam', 'owner')
    const required = { ...OPEN, twoFactorRequired: true }
    const refused = await olga.post('/workspaces/acme/policy', required)
    assert.equal(refused.status, 409)
    assert.match(refused.json.message, /for your own account first/)
    await enableTwoFactor(olga.browser)
    assert.equal((await olga.post('/workspaces/acme/policy', required)).status, 200)

    for (const operation of allOperations.filter(({ access }) => isRole(access))) {
      const response = await callOperation(adam.browser, operation)
      assert.equal(response.status, 403, operation.id)
      assert.match(response.json.message, /requires two-factor authentication/)
    }
    const [membership] = (await adam.get('/session')).json.workspaces
    assert.equal(membership.needsTwoFactor, true)
    await enableTwoFactor(adam.browser)
    assert.equal((await adam.get('/workspaces/acme')).status, 200)
    assert.equal((await adam.get('/session')).json.workspaces[0].needsTwoFactor, false)
    assert.equal((await adam.post('/account/two-factor/disable', { password: PASSWORD })).status, 200)
    assert.equal((await adam.get('/workspaces/acme')).status, 403, 'turned off again')
  })

  test(`${engine}: a workspace is renamed on every node at once`, async (t) => {
    const server = await serve(t, { engine })
    const olga = await addMember(server, 'Olga', 'owner')
    const nodes = [server.url, (await addNode(t, server)).url]
    const read = () =>
      Promise.all(
        nodes.map(async (url) => {
          const { json } = await caller(`${url}/api/v1`, server.key.token)('GET', '/workspace')
          return [json.slug, json.name]
        }),
      )
    // The second time from the cache.
    for (let round = 0; round < 2; round++) assert.deepEqual(await read(), Array(2).fill(['acme', 'Acme']))
    const renamed = await olga.post('/workspaces/acme/name', { name: 'Acme Corporation' })
    assert.deepEqual(renamed.json, { name: 'Acme Corporation' })
    assert.deepEqual(await read(), Array(2).fill(['acme', 'Acme Corporation']))
    assert.equal((await olga.get('/session')).json.workspaces[0].name, 'Acme Corporation')
    const [entry] = (await olga.get('/workspaces/acme/audit')).json.entries
    assert.deepEqual(
      [entry.action, entry.changes],
      ['workspace.renamed', { name: ['Acme', 'Acme Corporation'] }],
    )
  })
}

for (const engine of engines)
  test(`${engine}: users create up to ten workspaces, where the operator lets them`, async (t) => {
    const server = await serve(t, { engine, env: { ADIT_WORKSPACE_CREATION: 'users' } })
    const olga = await addMember(server, 'Olga', 'member')
    assert.equal((await olga.get('/session')).json.canCreateWorkspaces, true)
    const create = (slug: string) => olga.post('/workspaces', { slug, name: `Name of ${slug}` })
    const taken = await create('acme')
    assert.deepEqual([taken.status, taken.json.message], [409, 'Workspace "acme" already exists.'])
    for (const slug of ['login', 'xn--pypal-4ve']) {
      const reserved = await create(slug)
      assert.equal(reserved.status, 409)
      assert.match(reserved.json.message, /^The slug ".*" is reserved for the operator of this server/)
    }
    const created = await Promise.all(Array.from({ length: 12 }, (_, index) => create(`new-${index}`)))
    assert.deepEqual(created.map(({ status }) => status).sort(), [...Array(10).fill(201), 409, 409])
    const slug = created.find(({ status }) => status === 201)?.json.slug
    const { json } = await olga.get(`/workspaces/${slug}`)
    assert.deepEqual([json.role, json.provisioned, json.name], ['owner', true, `Name of ${slug}`])
    const { entries } = (await olga.get(`/workspaces/${slug}/audit`)).json
    assert.deepEqual([entries[0].action, entries[0].actor.name], ['workspace.created', 'Olga'])
  })

test('users cannot create workspaces by default', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const olga = await addMember(server, 'Olga', 'owner')
  assert.equal((await olga.get('/session')).json.canCreateWorkspaces, false)
  const refused = await olga.post('/workspaces', { slug: 'new', name: 'New' })
  assert.deepEqual([refused.status, refused.json.error], [403, 'forbidden'])
})

test('an empty column of the policy restricts nothing', () => {
  const columns = { key_days_max: null, keys_read_only_at: null, key_creator_role: null }
  assert.deepEqual(readPolicy({ ...columns, two_factor_required_at: null }, 'A'), OPEN)
})

async function newestDetails(browser: TestBrowser, action: string) {
  const { entries } = (await browser.get('/workspaces/acme/audit?limit=1')).json
  return entries.map((entry: { action: string; detail: string | null }) => {
    assert.equal(entry.action, action)
    return entry.detail
  })
}

test('unknown members of rules are 400 and named, and nothing changes', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const olga = await addMember(server, 'Olga', 'owner')
  const before = (await olga.get('/workspaces/acme')).json
  const requests: [path: string, body: object, unknown: string][] = [
    ['/policy', { twoFactorRequried: true }, '/body/twoFactorRequried'],
    ['/policy', { keyDaysMax: 30, constructor: {} }, '/body/constructor'],
    ['/names/app/access', { allowIP: ['192.0.2.0/24'] }, '/body/allowIP'],
    ['/names/app/access', { basicAuth: { user: 'ann', passwort: 'x' } }, '/body/basicAuth/passwort'],
    ['/webhooks', { url: 'https://hooks.example.com/', event: ['key.created'] }, '/body/event'],
    ['/keys', { label: 'ci', expiresIn: 30 }, '/body/expiresIn'],
  ]
  for (const [path, body, unknown] of requests) {
    const { status, json } = await olga.post(`/workspaces/acme${path}`, body)
    assert.equal(status, 400, path)
    const detail = json.details.find(({ path }: { path: string }) => path === unknown)
    assert.match(detail?.message ?? '', /^is unknown; expected \w+/, JSON.stringify(json))
  }
  assert.deepEqual((await olga.get('/workspaces/acme')).json.policy, before.policy)
})
