// Personal API keys: they may at most do what their user may at that moment, and end with the user.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Role } from '../../../src/contract/operation.ts'
import { createResetLink, getUserByEmail, setDisabled } from '../../../src/server/domain/accounts/users.ts'
import { PERSONAL_KEYS_MAX } from '../../../src/server/domain/keys/lifecycle.ts'
import { poll, startDevice } from '../../support/accounts/devices.ts'
import { addMember, enableTwoFactor, openBrowser, PASSWORD } from '../../support/accounts/users.ts'
import {
  addEdge,
  addNode,
  addWorkspace,
  caller,
  operator,
  serve,
  type TestServer,
} from '../../support/api/server.ts'
import type { Test } from '../../support/cleanup.ts'
import { engines } from '../../support/databases/create.ts'
import { addRows, readRows } from '../../support/databases/rows.ts'
import { pluck } from '../../support/pluck.ts'

type Member = Awaited<ReturnType<typeof addMember>>

const KEYS = '/workspaces/acme/keys'
const NOT_FOUND = [404, '{"error":"not_found"}']

async function setUp(t: Test, engine: (typeof engines)[number]) {
  const server = await serve(t, { engine })
  let count = 0
  const join = (role: Role) => addMember(server, `User${++count}`, role)
  const createPersonal = async (user: Member, label = 'personal') => {
    const { status, json, text } = await user.post(KEYS, { label, personal: true })
    assert.equal(status, 201, text)
    return json as { id: string; token: string }
  }
  const olga = await addMember(server, 'Olga', 'owner')
  const as = (key: { token: string }) => ({
    create: (label = 'x') =>
      server.call('POST', '/tokens', {
        key: key.token,
        body: JSON.stringify({ label }),
        headers: { 'content-type': 'application/json' },
      }),
    revoke: (id: string) => server.call('DELETE', `/tokens/${id}`, { key: key.token }),
    read: (url = server.url) => caller(`${url}/api/v1`, key.token)('GET', '/workspace'),
  })
  const findOwner = async (id: string) =>
    (
      await server.services.store.db.selectFrom('api_keys').select('user_id').where('id', '=', id).execute()
    )[0]?.user_id
  const setRole = (id: string, role: Role) => olga.post(`/workspaces/acme/members/${id}`, { role })
  const setPolicy = (change: object) => olga.post('/workspaces/acme/policy', change)
  return { server, olga, join, createPersonal, as, findOwner, setRole, setPolicy }
}

const deployments = await Promise.all(engines.map((engine) => setUp({ after }, engine)))

for (const [index, engine] of engines.entries()) {
  const shared = deployments[index] as Awaited<ReturnType<typeof setUp>>
  const { server, olga, join, createPersonal, as, findOwner, setRole, setPolicy } = shared

  test(`${engine}: a member's key manages that member's own keys only; others look unknown`, async () => {
    const [mia, max] = [await join('member'), await join('member')]
    const [own, other] = [await createPersonal(mia), await createPersonal(max)]
    const key = as(own)
    const { json: created, status } = await key.create()
    assert.equal(status, 201)
    assert.equal(await findOwner(created.id), mia.id, 'personal again, of the same user')
    const unknown = await key.revoke('tok_none')
    for (const id of [other.id, server.key.id]) {
      const response = await key.revoke(id)
      assert.deepEqual([response.status, response.text], NOT_FOUND)
      assert.equal(response.text, unknown.text)
    }
    assert.equal((await as(other).read()).status, 200, 'unchanged')
    assert.equal((await key.revoke(created.id)).status, 200)
    assert.equal((await as(created).read()).status, 401)
    const { tokens } = (await server.call('GET', '/tokens', { key: own.token })).json
    assert.ok(
      tokens.some(({ id }: { id: string }) => id === server.key.id),
      'lists all keys',
    )
    assert.deepEqual(
      Object.keys(tokens[0]).sort(),
      ['createdAt', 'id', 'label', 'lastUsedAt', 'revokedAt'],
      'the fields of the specification',
    )
  })

  test(`${engine}: the key of an admin or owner manages all keys, until the very next request after a demotion`, async (t) => {
    const adam = await join('admin')
    const nodes = engine === 'postgres' ? [server.url, (await addNode(t, server)).url] : [server.url]
    const personal = await createPersonal(adam)
    const others = await Promise.all([1, 2, 3].map(() => createPersonal(olga)))
    for (const url of nodes) assert.equal((await as(personal).read(url)).status, 200, 'cached')
    assert.equal((await as(personal).revoke(others[0]?.id as string)).status, 200)
    const { json: workspaceKey } = await server.post('/tokens', { label: 'of the workspace' })
    assert.equal(await findOwner(workspaceKey.id), null, 'as before')
    assert.equal((await setRole(adam.id, 'member')).status, 200)
    for (const url of nodes) {
      const call = caller(`${url}/api/v1`, personal.token)
      assert.equal((await call('DELETE', `/tokens/${workspaceKey.id}`)).status, 404)
      assert.equal((await call('DELETE', `/tokens/${others[1]?.id}`)).status, 404)
    }
    assert.equal((await setRole(adam.id, 'owner')).status, 200)
    assert.equal((await as(personal).revoke(workspaceKey.id)).status, 200)
  })

  test(`${engine}: the policy decides whether members create keys, and messages say whom to ask`, async () => {
    const mia = await join('member')
    const personal = await createPersonal(mia)
    const workspaceKey = await mia.post(KEYS, { label: 'x' })
    assert.equal(workspaceKey.status, 403)
    assert.match(workspaceKey.json.message, /Create a personal key, or ask one of them/)
    assert.equal((await setPolicy({ keyCreators: 'admin' })).status, 200)
    const rejected = await mia.post(KEYS, { label: 'x', personal: true })
    assert.equal(rejected.status, 403)
    assert.match(rejected.json.message, /lets only admins and owners create API keys\. Ask one of them/)
    const byKey = await as(personal).create()
    assert.deepEqual([byKey.status, byKey.json.error], [400, 'invalid_request'])
    assert.match(byKey.json.details[0].message, /lets only admins and owners create API keys/)
    const byOwner = await as(await createPersonal(olga)).create()
    assert.deepEqual([byOwner.status, await findOwner(byOwner.json.id)], [201, olga.id])
    await setPolicy({ keyCreators: 'member', keysManageKeys: false })
    const [create, revoke] = [await as(personal).create(), await as(personal).revoke('tok_none')]
    for (const { status, json } of [create, revoke]) {
      assert.equal(status, 400)
      assert.match(json.details[0].message, /does not let API keys/)
    }
    assert.equal((await as(personal).revoke(personal.id)).status, 200, 'always itself')
    await setPolicy({ keysManageKeys: true })
  })

  test(`${engine}: members revoke and rotate their own keys in the dashboard, and nobody else's`, async () => {
    const [mia, max] = [await join('member'), await join('member')]
    const [own, other] = [await createPersonal(mia, 'laptop'), await createPersonal(max)]
    const foreign = await mia.remove(`${KEYS}/${other.id}`)
    assert.deepEqual([foreign.status, foreign.text], NOT_FOUND)
    const rotated = await mia.post(`${KEYS}/${own.id}/rotate`, { overlap: 'none' })
    assert.equal(rotated.status, 201, rotated.text)
    assert.equal(await findOwner(rotated.json.id), mia.id)
    const byOwner = await olga.post(`${KEYS}/${other.id}/rotate`, { overlap: 'none' })
    assert.equal(byOwner.status, 409, 'its successor would let the owner act as the user')
    assert.match(byOwner.json.message, /only its user can rotate/)
    const mine = await mia.get(`${KEYS}?owner=me`)
    assert.deepEqual(pluck(mine.json.keys, 'id', 'user'), [
      [rotated.json.id, { name: mia.name, isYou: true }],
      [own.id, { name: mia.name, isYou: true }],
    ])
    assert.equal((await mia.remove(`${KEYS}/${rotated.json.id}`)).status, 200)
    assert.equal((await olga.remove(`${KEYS}/${other.id}`)).status, 200)
  })

  test(`${engine}: a sign-in from a terminal creates a personal key, also for members`, async () => {
    for (const role of ['member', 'owner'] as const) {
      const user = await join(role)
      const { deviceCode, userCode } = await startDevice(server.url, `of-${role}`)
      assert.equal((await user.post('/workspaces/acme/devices', { code: userCode })).status, 200)
      const { json } = await poll(server.url, deviceCode)
      assert.equal(await findOwner(json.key_id), user.id)
    }
  })

  test(`${engine}: removing a member, or leaving, revokes their keys on every node before the response`, async (t) => {
    const second = engine === 'postgres' ? (await addNode(t, server)).url : server.url
    const edge = await addEdge(server, `edge-${engine}`)
    const elsewhere = await addWorkspace(server, 'elsewhere')
    for (const end of ['remove', 'leave'] as const) {
      const mia = await join('member')
      const keys = await Promise.all([1, 2, 3].map(() => createPersonal(mia)))
      for (const key of keys) assert.equal((await as(key).read(second)).status, 200)
      assert.equal((await edge.verify(keys[0]?.token as string)).json.valid, true)
      const ended =
        end === 'remove'
          ? await olga.remove(`/workspaces/acme/members/${mia.id}`)
          : await mia.remove('/workspaces/acme/membership')
      assert.equal(ended.status, 200, ended.text)
      for (const url of [second, server.url])
        for (const key of keys) assert.equal((await as(key).read(url)).status, 401)
      assert.deepEqual((await edge.verify(keys[0]?.token as string)).json, {
        valid: false,
        reason: 'revoked',
      })
      const { entries } = (await olga.get('/workspaces/acme/audit?action=key.revoked&limit=3')).json
      assert.deepEqual(
        entries
          .map((entry: { target: { id: string }; detail: string }) => [entry.target.id, entry.detail])
          .sort(),
        keys.map(({ id }) => [id, 'user-ended']).sort(),
      )
    }
    assert.equal((await as(server.key).read()).status, 200)
    assert.equal((await as(elsewhere.key).read()).status, 200)
  })

  test(`${engine}: a disabled user's keys are revoked everywhere, and stay so when the user is enabled again`, async (t) => {
    const second = engine === 'postgres' ? (await addNode(t, server)).url : server.url
    const mia = await join('admin')
    const keys = await Promise.all([1, 2].map(() => createPersonal(mia)))
    for (const key of keys) assert.equal((await as(key).read(second)).status, 200)
    await setDisabled(server.services, operator, mia.email, true)
    for (const key of keys) assert.equal((await as(key).read(second)).status, 401)
    await setDisabled(server.services, operator, mia.email, false)
    for (const key of keys) assert.equal((await as(key).read()).status, 401)
  })

  test(`${engine}: no key survives a removal or a disabling that races with its creation`, async () => {
    for (const end of ['remove', 'disable'] as const)
      for (let round = 0; round < 5; round++) {
        const mia = await join('member')
        const personal = await createPersonal(mia)
        const creations = Promise.all([
          as(personal).create(),
          as(personal).create(),
          mia.post(KEYS, { personal: true }),
        ])
        if (end === 'remove') await olga.remove(`/workspaces/acme/members/${mia.id}`)
        else await setDisabled(server.services, operator, mia.email, true)
        for (const { status, json } of await creations)
          if (status === 201) assert.equal((await as(json).read()).status, 401, `${end}, round ${round}`)
          else assert.ok([401, 404].includes(status), String(status))
      }
  })

  test(`${engine}: a user has a limited number of personal keys`, async () => {
    const mia = await join('member')
    const { id, token } = await createPersonal(mia)
    const [row = assert.fail()] = await readRows(server.services, 'api_keys', { id })
    const more = Array.from({ length: PERSONAL_KEYS_MAX - 1 }, (_, n) => `${id}${n}`)
    await addRows(server.services, 'api_keys', ...more.map((other) => ({ ...row, id: other, hash: other })))
    const rejected = await mia.post(KEYS, { personal: true })
    assert.deepEqual([rejected.status, rejected.json.error], [400, 'invalid_request'])
    assert.match(rejected.json.message ?? rejected.json.details[0].message, /100 active personal API keys/)
    assert.equal((await olga.remove(`/workspaces/acme/members/${mia.id}`)).status, 200)
    const hashes = new Set(pluck(await readRows(server.services, 'change_log'), 'hash'))
    for (const hash of more) assert.ok(hashes.has(hash))
    assert.equal((await as({ token }).read()).status, 401)
  })

  test(`${engine}: personal keys of users without required two-factor authentication are revoked everywhere`, async (t) => {
    const second = engine === 'postgres' ? (await addNode(t, server)).url : server.url
    const edge = await addEdge(server, `two-factor-${engine}`)
    const workspace = await addWorkspace(server, `strict-${engine}`)
    const strict = `/workspaces/strict-${engine}`
    const join = (name: string, role: Role) =>
      addMember(server, `${name}-${engine}`, role, `strict-${engine}`)
    const owner = await join('Olaf', 'owner')
    const [mia, max, sam] = [
      await join('Mio', 'member'),
      await join('Maja', 'member'),
      await join('Sam', 'member'),
    ]
    const create = async (user: Member) => (await user.post(`${strict}/keys`, { personal: true })).json
    const check = async (key: { token: string }, valid: boolean) => {
      for (const url of [second, server.url])
        assert.equal((await as(key).read(url)).status, valid ? 200 : 401, url)
      const { json } = await edge.verify(key.token)
      assert.deepEqual([json.valid, json.reason], valid ? [true, undefined] : [false, 'revoked'])
    }
    for (const user of [owner, max]) await enableTwoFactor(user.browser)
    await removePassword(server, sam.id)
    const [ofOwner, ofMia, ofMax, ofSam] = await Promise.all([owner, mia, max, sam].map(create))
    for (const key of [ofOwner, ofMia, ofMax, ofSam]) await check(key, true)

    assert.equal((await owner.post(`${strict}/policy`, { twoFactorRequired: true })).status, 200)
    await check(ofMia, false)
    for (const key of [ofOwner, ofMax, ofSam, workspace.key]) await check(key, true)
    const { entries } = (await owner.get(`${strict}/audit?action=key.revoked`)).json
    assert.deepEqual(
      entries.map((entry: { target: { id: string }; detail: string }) => [entry.target.id, entry.detail]),
      [[ofMia.id, 'two-factor-missing']],
    )

    const disabled = await max.post('/account/two-factor/disable', { password: PASSWORD })
    assert.equal(disabled.status, 200, disabled.text)
    await check(ofMax, false)
    assert.equal((await max.post(`${strict}/keys`, { personal: true })).status, 403)
    await createResetLink(server.services, operator, await getUserByEmail(server.services, owner.email), {
      disablesTwoFactor: true,
    })
    await check(ofOwner, false)
    const { secret: link } = await createResetLink(
      server.services,
      operator,
      await getUserByEmail(server.services, sam.email),
    )
    assert.equal(
      (await openBrowser(server.url).post('/links/redeem', { link, password: PASSWORD })).status,
      200,
    )
    await check(ofSam, false)
    await check(workspace.key, true)
  })

  test(`${engine}: no key survives a requirement of two-factor authentication that races with its creation`, async () => {
    const slug = `race-${engine}`
    await addWorkspace(server, slug)
    const owner = await addMember(server, `Racer-${engine}`, 'owner', slug)
    await enableTwoFactor(owner.browser)
    const mia = await addMember(server, `Raced-${engine}`, 'member', slug)
    const policy = (twoFactorRequired: boolean) =>
      owner.post(`/workspaces/${slug}/policy`, { twoFactorRequired })
    for (let round = 0; round < 5; round++) {
      const create = () => mia.post(`/workspaces/${slug}/keys`, { personal: true })
      const creations = Promise.all([create(), create(), create()])
      assert.equal((await policy(true)).status, 200)
      for (const { status, json } of await creations)
        if (status === 201) assert.equal((await as(json).read()).status, 401, `round ${round}`)
        else assert.equal(status, 403)
      assert.equal((await policy(false)).status, 200)
    }
  })
}

/** What remains of a user who signs in with an identity provider only. */
const removePassword = ({ services: { store } }: TestServer, userId: string) =>
  store.transaction((db) => db.deleteFrom('identities').where('user_id', '=', userId).execute())
