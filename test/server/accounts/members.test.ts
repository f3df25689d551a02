// Members of a workspace: roles, invitations and links.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createResetLink, setDisabled } from '../../../src/server/domain/accounts/users.ts'
import { revoke as revokeEdge } from '../../../src/server/domain/tunnels/edges.ts'
import { setRole } from '../../../src/server/store/accounts/members.ts'
import {
  addMember,
  linkFor,
  openBrowser,
  PASSWORD,
  serveWithOwner,
  signIn,
} from '../../support/accounts/users.ts'
import { addEdge, addWorkspace, operator, rename, serve } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { addRows, readRows } from '../../support/databases/rows.ts'
import { connectRaw } from '../../support/network/raw.ts'
import { pluck } from '../../support/pluck.ts'

for (const engine of engines) {
  test(`${engine}: a workspace has at most 1,000 members and open invitations`, async (t) => {
    const { server, ann } = await serveWithOwner(t, { engine })
    const now = server.services.clock()
    const invitation = (index: number) => ({
      id: `lnk_${index}`,
      hash: `hash ${index}`,
      purpose: 'join' as const,
      email: `guest-${index}@example.com`,
      proves_email: 0,
      workspace_id: server.workspace.id,
      role: 'member' as const,
      // By the operator, whose invitations the daily limits do not count.
      created_by: 'operator',
      creator_id: null,
      created_at: now,
      expires_at: now + 1_000_000,
      ended_at: index >= 998 ? now : null,
    })
    await addRows(server.services, 'links', ...Array.from({ length: 1_500 }, (_, n) => invitation(n)))
    const invite = (email: string) => ann.post('/workspaces/acme/invitations', { email, role: 'member' })
    const statuses = await Promise.all(['x@example.com', 'y@example.com', 'z@example.com'].map(invite))
    assert.deepEqual(statuses.map(({ status }) => status).sort(), [201, 409, 409])
    const rejected = statuses.find(({ status }) => status === 409)
    assert.match(
      rejected?.json.message,
      /^The workspace has 1000 members and open invitations, which is the limit\. Remove/,
    )
    assert.equal((await invite('guest-7@example.com')).status, 201, 'it replaces the previous one')
    await ann.remove('/workspaces/acme/invitations/lnk_8')
    assert.equal((await invite('w@example.com')).status, 201)
    assert.equal((await invite('v@example.com')).status, 409)
  })

  test(`${engine}: an invitation of a user called operator is not one of the operator`, async (t) => {
    const { server, ann } = await serveWithOwner(t, { engine })
    await ann.post('/account/name', { name: 'operator root' })
    await ann.post('/workspaces/acme/invitations', { email: 'bob@example.com', role: 'member' })
    await linkFor(server, 'cay@example.com', 'member')
    const { invitations } = (await ann.get('/workspaces/acme/members')).json
    assert.deepEqual(pluck(invitations, 'email', 'invitedBy').sort(), [
      ['bob@example.com', { kind: 'user', name: 'operator root' }],
      ['cay@example.com', { kind: 'operator', name: 'test' }],
    ])
  })

  test(`${engine}: an invitation works once, grants its role, and is then not listed`, async (t) => {
    const { server, ann } = await serveWithOwner(t, { engine })
    const invited = await ann.post('/workspaces/acme/invitations', {
      email: 'Bob@Example.com',
      role: 'admin',
    })
    assert.equal(invited.status, 201)
    assert.equal(invited.headers.get('cache-control'), 'no-store')
    assert.match(invited.json.link, new RegExp(`^${server.url}/link#[\\w-]{43}$`))
    const { invitations } = (await ann.get('/workspaces/acme/members')).json
    assert.deepEqual(pluck(invitations, 'email', 'role', 'invitedBy'), [
      ['bob@example.com', 'admin', { kind: 'user', name: 'Ann' }],
    ])
    const link = invited.json.link.split('#')[1]
    const bob = openBrowser(server.url)
    assert.deepEqual((await bob.post('/links/read', { link })).json, {
      purpose: 'join',
      email: 'bob@example.com',
      workspace: { slug: 'acme', name: 'Acme' },
      role: 'admin',
      step: 'choose',
      isNew: true,
    })
    for (const [body, path] of [
      [{ link, password: PASSWORD }, '/body/name'],
      [{ link, name: 'Bob' }, '/body/password'],
      [{ link, name: 'Bob', password: 'letmein123' }, '/body/password'],
    ] as const) {
      const { status, json } = await bob.post('/links/redeem', body)
      assert.deepEqual([status, json.details[0].path], [400, path])
    }
    assert.deepEqual((await bob.post('/links/redeem', { link, name: 'Bob', password: PASSWORD })).json, {
      next: 'signed_in',
    })
    assert.equal((await bob.get('/workspaces/acme')).json.role, 'admin')
    for (const path of ['/links/read', '/links/redeem'])
      assert.equal((await bob.post(path, { link, name: 'Bob', password: PASSWORD })).status, 404)
    const { members, invitations: left } = (await ann.get('/workspaces/acme/members')).json
    assert.deepEqual(left, [])
    assert.deepEqual(pluck(members, 'name', 'role', 'isYou'), [
      ['Ann', 'owner', true],
      ['Bob', 'admin', false],
    ])
    const { entries } = (await ann.get('/workspaces/acme/audit')).json
    assert.deepEqual(
      entries
        .slice(0, 3)
        .map((entry: { actor: { name: string }; action: string; target: { name: string } }) => [
          entry.actor.name,
          entry.action,
          entry.target.name,
        ]),
      [
        ['Bob', 'user.signed-in', 'Bob'],
        ['Bob', 'user.joined', 'Bob'],
        ['Ann', 'user.invited', 'bob@example.com'],
      ],
    )
  })

  test(`${engine}: of two concurrent uses of a link, one succeeds`, async (t) => {
    const server = await serve(t, { engine })
    const link = await linkFor(server, 'ann@example.com', 'owner')
    const use = () => openBrowser(server.url).post('/links/redeem', { link, name: 'Ann', password: PASSWORD })
    const statuses = (await Promise.all([use(), use(), use()])).map(({ status }) => status)
    assert.deepEqual(statuses.sort(), [200, 404, 404])
  })

  test(`${engine}: a revoked invitation and one older than 24 hours are rejected`, async (t) => {
    let now = Date.now()
    const { server, ann } = await serveWithOwner(t, { engine, clock: () => now })
    const invite = async () =>
      (await ann.post('/workspaces/acme/invitations', { email: 'bob@example.com', role: 'member' })).json
    const revoked = await invite()
    assert.equal((await ann.remove(`/workspaces/acme/invitations/${revoked.id}`)).status, 200)
    assert.equal((await ann.remove(`/workspaces/acme/invitations/${revoked.id}`)).status, 404)
    const replaced = await invite()
    const old = await invite()
    now += 24 * 3_600_000 - 60_000
    const read = async ({ link }: { link: string }) =>
      (await openBrowser(server.url).post('/links/read', { link: link.split('#')[1] })).status
    assert.deepEqual([await read(revoked), await read(replaced), await read(old)], [404, 404, 200])
    now += 120_000
    assert.equal(await read(old), 404)
  })

  test(`${engine}: an invitation to an existing account requires signing in to it`, async (t) => {
    const server = await serve(t, { engine })
    await addWorkspace(server, 'elsewhere')
    const bob = await addMember(server, 'Bob', 'member', 'elsewhere')
    const ann = await addMember(server, 'Ann', 'owner')
    const invited = await ann.post('/workspaces/acme/invitations', { email: bob.email, role: 'member' })
    const link = invited.json.link.split('#')[1]
    const stranger = openBrowser(server.url)
    assert.equal((await stranger.post('/links/read', { link })).json.step, 'sign_in')
    const theft = await stranger.post('/links/redeem', {
      link,
      name: 'Mallory',
      password: 'a password of theirs',
    })
    assert.equal(theft.status, 401)
    assert.match(theft.json.message, /Sign in as bob@example\.com/)
    assert.equal((await ann.post('/links/redeem', { link })).status, 401, 'another user cannot accept it')
    assert.equal((await signIn(openBrowser(server.url), bob.email, 'a password of theirs')).status, 401)
    assert.equal((await bob.post('/links/read', { link })).json.step, 'accept')
    assert.equal((await bob.post('/links/redeem', { link })).status, 200)
    const { workspaces } = (await bob.get('/session')).json
    assert.deepEqual(pluck(workspaces, 'slug'), ['acme', 'elsewhere'])
    const again = await ann.post('/workspaces/acme/invitations', { email: bob.email, role: 'member' })
    assert.equal(again.status, 409)
  })

  test(`${engine}: no member can change, remove or create a member with a higher role`, async (t) => {
    const server = await serve(t, { engine })
    const owner = await addMember(server, 'Olga', 'owner')
    const admin = await addMember(server, 'Adam', 'admin')
    const member = await addMember(server, 'Mia', 'member')
    const members = '/workspaces/acme/members'
    for (const [response, status] of [
      [await admin.post(`${members}/${owner.id}`, { role: 'member' }), 403],
      [await admin.remove(`${members}/${owner.id}`), 403],
      [await admin.post(`${members}/${member.id}`, { role: 'owner' }), 403],
      [await admin.post(`${members}/${admin.id}`, { role: 'owner' }), 403],
      [await admin.post('/workspaces/acme/invitations', { email: 'x@example.com', role: 'owner' }), 403],
      [await member.post(`${members}/${member.id}`, { role: 'admin' }), 403],
      [await member.remove(`${members}/${admin.id}`), 403],
      [await admin.post(`${members}/usr_none`, { role: 'member' }), 404],
      [await admin.post(`${members}/${member.id}`, { role: 'admin' }), 200],
      [await owner.post(`${members}/${admin.id}`, { role: 'member' }), 200],
      [await owner.remove(`${members}/${admin.id}`), 200],
    ] as const)
      assert.equal(response.status, status, response.text)
    const forOwner = await owner.post('/workspaces/acme/invitations', {
      email: 'x@example.com',
      role: 'owner',
    })
    assert.equal((await member.remove(`/workspaces/acme/invitations/${forOwner.json.id}`)).status, 403)
    assert.equal((await admin.get('/workspaces/acme')).status, 404, 'a removed member has no access')
  })

  test(`${engine}: the last owner cannot leave, step down or be removed, also concurrently`, async (t) => {
    const server = await serve(t, { engine })
    const [ann, bob] = [await addMember(server, 'Ann', 'owner'), await addMember(server, 'Bob', 'owner')]
    const leave = (user: typeof ann) => user.remove('/workspaces/acme/membership')
    const statuses = (await Promise.all([leave(ann), leave(bob)])).map(({ status }) => status)
    assert.deepEqual(statuses.sort(), [200, 409])
    const stays = (await ann.get('/workspaces/acme')).status === 200 ? ann : bob
    const rejected = await leave(stays)
    assert.equal(rejected.status, 409)
    assert.match(rejected.json.message, /Make another member an owner first/)
    for (const response of [
      await stays.post(`/workspaces/acme/members/${stays.id}`, { role: 'member' }),
      await stays.remove(`/workspaces/acme/members/${stays.id}`),
    ])
      assert.equal(response.status, 409)
    const gone = await addMember(server, 'Carl', 'owner')
    await setDisabled(server.services, operator, gone.email, true)
    assert.equal((await leave(stays)).status, 409, 'a disabled owner does not count')
  })

  test(`${engine}: a lowered role applies to requests already in progress`, async (t) => {
    const { server, ann } = await serveWithOwner(t, { engine })
    const eve = await addMember(server, 'Eve', 'owner')
    const cookie = [...eve.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    /** Sends the headers now, and the body when the returned function is called. */
    const slow = (method: string, path: string, body: object) => {
      const text = JSON.stringify(body)
      const socket = connectRaw(server.url)
      socket.write(
        `${method} /dashboard/api/workspaces/acme${path} HTTP/1.1\r\nhost: ${new URL(server.url).host}\r\n` +
          `origin: ${server.url}\r\ncookie: ${cookie}\r\ncontent-type: application/json\r\n` +
          `content-length: ${text.length}\r\nconnection: close\r\n\r\n`,
      )
      return async () => {
        socket.write(text)
        return Number(/^HTTP\/1\.1 (\d+)/.exec(await socket.response)?.[1])
      }
    }
    const roleSetter = (role: 'member' | 'admin' | 'owner') =>
      server.services.store.transaction((db) => setRole(db, server.workspace.id, eve.id, role))
    const begin = async () => {
      const begun = [
        slow('POST', '/invitations', { email: 'eve2@example.com', role: 'owner' }),
        slow('POST', `/members/${eve.id}`, { role: 'owner' }),
        slow('POST', `/members/${ann.id}`, { role: 'member' }),
        slow('POST', '/keys', { label: 'late' }),
      ]
      await new Promise((resolve) => setTimeout(resolve, 600))
      return async () => {
        const statuses = []
        for (const finish of begun) statuses.push(await finish())
        return statuses
      }
    }
    const asAdmin = await begin()
    await roleSetter('admin')
    assert.deepEqual(await asAdmin(), [403, 403, 403, 201], 'an admin may only create keys')
    await roleSetter('owner')
    const asMember = await begin()
    await roleSetter('member')
    assert.deepEqual(await asMember(), [403, 403, 403, 403])
    await roleSetter('owner')
    const signedOut = await begin()
    await eve.remove('/account/sessions')
    assert.deepEqual(await signedOut(), [401, 401, 401, 401])
    const { members, invitations } = (await ann.get('/workspaces/acme/members')).json
    assert.deepEqual(pluck(members, 'name', 'role'), [
      ['Ann', 'owner'],
      ['Eve', 'owner'],
    ])
    assert.deepEqual(invitations, [])
  })

  test(`${engine}: removing a member ends their invitations; replacing one needs its role`, async (t) => {
    const { server, ann } = await serveWithOwner(t, { engine })
    const eve = await addMember(server, 'Eve', 'owner')
    const adam = await addMember(server, 'Adam', 'admin')
    const invite = (who: typeof ann, email: string, role: string) =>
      who.post('/workspaces/acme/invitations', { email, role })
    const kept = (await invite(eve, 'eve2@example.com', 'owner')).json
    await invite(ann, 'olga@example.com', 'owner')
    assert.equal((await invite(adam, 'olga@example.com', 'member')).status, 403)
    assert.equal((await invite(ann, 'olga@example.com', 'member')).status, 201)
    const { entries } = (await ann.get('/workspaces/acme/audit')).json
    assert.deepEqual(pluck(entries.slice(0, 2), 'action'), ['user.invited', 'invitation.revoked'])
    await ann.remove(`/workspaces/acme/members/${eve.id}`)
    const link = kept.link.split('#')[1]
    assert.equal(
      (await eve.post('/links/read', { link })).status,
      404,
      'a removed member cannot return by their own invitation',
    )
  })

  test(`${engine}: two invitations of one address used concurrently create one account`, async (t) => {
    const server = await serve(t, { engine })
    await addWorkspace(server, 'elsewhere')
    const links = [
      await linkFor(server, 'bob@example.com', 'member'),
      await linkFor(server, 'bob@example.com', 'owner', 'elsewhere'),
    ]
    const responses = await Promise.all(
      links.map((link, index) =>
        openBrowser(server.url).post('/links/redeem', {
          link,
          name: 'Bob',
          password: `a password of Bob ${index}`,
        }),
      ),
    )
    assert.equal(responses.filter(({ status }) => status === 200).length, 1)
    assert.equal((await readRows(server.services, 'users')).length, 1)
  })

  test(`${engine}: every action is rolled back if its audit entry cannot be written`, async (t) => {
    const { server, ann } = await serveWithOwner(t, { engine })
    const bob = await addMember(server, 'Bob', 'member')
    const { id: keyId } = (await ann.post('/workspaces/acme/keys', { label: 'stays' })).json
    const before = (await ann.get('/workspaces/acme/members')).text
    await rename(server, 'audit_log', 'audit_log_away')
    for (const attempt of [
      () => ann.post('/workspaces/acme/keys', { label: 'x' }),
      () => ann.remove(`/workspaces/acme/keys/${keyId}`),
      () => ann.post('/workspaces/acme/invitations', { email: 'x@example.com', role: 'member' }),
      () => ann.post(`/workspaces/acme/members/${bob.id}`, { role: 'admin' }),
      () => ann.remove(`/workspaces/acme/members/${bob.id}`),
      () => bob.remove('/workspaces/acme/membership'),
      () => ann.post('/account/name', { name: 'Anna' }),
      () => ann.post('/account/password', { current: PASSWORD, password: 'another good password' }),
      () => ann.post('/account/two-factor', { password: PASSWORD }),
      () => ann.remove('/account/sessions'),
      () => ann.post('/sign-out'),
      () => signIn(openBrowser(server.url), ann.email),
    ])
      assert.equal((await attempt()).status, 500, attempt.toString())
    await rename(server, 'audit_log_away', 'audit_log')
    assert.equal((await ann.get('/workspaces/acme/members')).text, before)
    assert.equal((await ann.get('/workspaces/acme/keys?state=active')).json.keys.length, 2)
    assert.equal((await signIn(openBrowser(server.url), ann.email)).json.next, 'signed_in')
  })

  test(`${engine}: a reset link works once, and ends every session`, async (t) => {
    const { server, ann } = await serveWithOwner(t, { engine })
    const [user = assert.fail()] = await readRows(server.services, 'users')
    const { secret: link } = await createResetLink(server.services, operator, user)
    const browser = openBrowser(server.url)
    const facts = (await browser.post('/links/read', { link })).json
    assert.deepEqual([facts.purpose, facts.step, facts.isNew], ['reset', 'choose', false])
    assert.equal(
      (await browser.post('/links/redeem', { link, password: 'a brand new password' })).status,
      200,
    )
    assert.equal((await browser.get('/session')).status, 200)
    assert.equal((await ann.get('/session')).status, 401)
    assert.equal(
      (await browser.post('/links/redeem', { link, password: 'yet another password' })).status,
      404,
    )
    assert.equal((await signIn(openBrowser(server.url), ann.email)).status, 401)
  })

  test(`${engine}: audit entries keep the name of a user who was removed or renamed`, async (t) => {
    const { server, ann } = await serveWithOwner(t, { engine })
    const bob = await addMember(server, 'Bob', 'admin')
    const { id } = (await bob.post('/workspaces/acme/keys', { label: '<img src=x onerror=alert(1)>' })).json
    await bob.post('/account/name', { name: 'Robert' })
    await bob.remove('/workspaces/acme/membership')
    const { keys } = (await ann.get('/workspaces/acme/keys')).json
    const found = keys.find((key: { id: string }) => key.id === id)
    assert.deepEqual(found.createdBy, { kind: 'user', name: 'Bob' })
    const { entries } = (await ann.get('/workspaces/acme/audit')).json
    const created = entries.find((entry: { target: { id: string } }) => entry.target.id === id)
    assert.deepEqual(created.actor.name, 'Bob')
    assert.equal(created.target.name, '<img src=x onerror=alert(1)>')
    assert.equal(entries[0].actor.name, 'Robert')
  })

  test(`${engine}: the key list names the key that created another by its label`, async (t) => {
    const { server, ann } = await serveWithOwner(t, { engine })
    const created = (await server.post('/tokens', { label: 'made by a key' })).json
    await ann.post('/account/name', { name: `key ${server.key.id}` })
    const forged = (await ann.post('/workspaces/acme/keys', {})).json
    await ann.post('/account/name', { name: 'Ann' })
    const unlabeled = (await ann.post('/workspaces/acme/keys', {})).json
    const headers = { authorization: `Bearer ${unlabeled.token}` }
    const nested = (await server.post('/tokens', { label: 'nested' }, headers)).json
    const { keys } = (await ann.get('/workspaces/acme/keys')).json
    const creators = new Map(pluck(keys, 'id', 'createdBy'))
    assert.deepEqual(creators.get(server.key.id), { kind: 'operator', name: 'test' })
    assert.deepEqual(creators.get(created.id), { kind: 'key', name: 'first' })
    assert.deepEqual(creators.get(unlabeled.id), { kind: 'user', name: 'Ann' })
    assert.deepEqual(creators.get(forged.id), { kind: 'user', name: `key ${server.key.id}` })
    assert.deepEqual(creators.get(nested.id), { kind: 'key', name: unlabeled.id }, 'without a label, the id')
  })

  test(`${engine}: the last owner who can sign in is marked, also after a role change`, async (t) => {
    const { server, ann } = await serveWithOwner(t, { engine })
    const bob = await addMember(server, 'Bob', 'admin')
    const lastOwners = async () =>
      pluck(
        (await ann.get('/workspaces/acme/members')).json.members.filter(
          (user: { isLastOwner: boolean }) => user.isLastOwner,
        ),
        'name',
      )
    assert.deepEqual(await lastOwners(), ['Ann'])
    const promoted = await ann.post(`/workspaces/acme/members/${bob.id}`, { role: 'owner' })
    assert.equal(promoted.json.isLastOwner, false)
    assert.deepEqual(await lastOwners(), [])
    await setDisabled(server.services, operator, bob.email, true)
    assert.deepEqual(await lastOwners(), ['Ann'])
  })

  test(`${engine}: the workspace names an active edge, and none after it is revoked`, async (t) => {
    const server = await serve(t, { engine })
    const ann = await addMember(server, 'Ann', 'member')
    const edgeName = async () => (await ann.get('/workspaces/acme')).json.edgeName
    assert.equal(await edgeName(), null)
    const { id } = await addEdge(server, 'fra-1')
    assert.equal(await edgeName(), 'fra-1')
    await revokeEdge(server.services, operator, id)
    assert.equal(await edgeName(), null)
  })

  test(`${engine}: keys and audit entries are paginated without gaps or duplicates`, async (t) => {
    const { ann } = await serveWithOwner(t, { engine })
    for (let index = 0; index < 7; index++) await ann.post('/workspaces/acme/keys', { label: `k${index}` })
    const { keys: all } = (await ann.get('/workspaces/acme/keys')).json
    await ann.remove(`/workspaces/acme/keys/${all[2].id}`)
    const walk = async (path: string, list: string) => {
      const seen: { id: string }[] = []
      for (let cursor = ''; ; ) {
        const { json } = await ann.get(`${path}limit=3${cursor && `&cursor=${cursor}`}`)
        seen.push(...json[list])
        if (json.next === null) return seen.map(({ id }) => id)
        cursor = json.next
      }
    }
    const ids = pluck(all, 'id')
    assert.deepEqual(await walk('/workspaces/acme/keys?', 'keys'), ids)
    assert.deepEqual(await walk('/workspaces/acme/keys?state=revoked&', 'keys'), [ids[2]])
    assert.deepEqual(
      await walk('/workspaces/acme/keys?state=active&', 'keys'),
      ids.filter((id: string) => id !== ids[2]),
    )
    const audit = await walk('/workspaces/acme/audit?', 'entries')
    assert.deepEqual(audit, [...audit].sort().reverse())
    assert.equal(audit.length, (await ann.get('/workspaces/acme/audit?limit=200')).json.entries.length)
    for (const bad of ['limit=0', 'limit=201', 'cursor=x', 'limit=1&limit=2'])
      assert.equal((await ann.get(`/workspaces/acme/audit?${bad}`)).status, 400, bad)
  })
}
