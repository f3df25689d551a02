// Audit entries of sign-ins and account changes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AuditAction } from '../../../src/contract/audit-actions.ts'
import { createResetLink, setDisabled } from '../../../src/server/domain/accounts/users.ts'
import { createAuditRow } from '../../../src/server/domain/audit/entries.ts'
import { insertAudit } from '../../../src/server/store/audit/entries.ts'
import { generateCode } from '../../support/accounts/authenticator.ts'
import { startHostileProvider } from '../../support/accounts/hostile-provider.ts'
import {
  addMember,
  linkFor,
  openBrowser,
  PASSWORD,
  serveWithOwner,
  signIn,
  type TestBrowser,
} from '../../support/accounts/users.ts'
import { addWorkspace, operator, serve, type TestServer } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { addRows, readRows } from '../../support/databases/rows.ts'
import { pluck } from '../../support/pluck.ts'
import { until } from '../../support/until.ts'

interface Entry {
  actor: { kind: string; id: string; name: string | null }
  action: string
  target: { kind: string; name: string | null }
  address: string | null
  changes: Record<string, unknown>
  detail: string | null
  count: number
}

const readLog = async (browser: Pick<TestBrowser, 'get'>, workspace = 'acme'): Promise<Entry[]> =>
  (await browser.get(`/workspaces/${workspace}/audit?limit=100`)).json.entries

/** Audit actions on users with their detail, newest first. */
const actsIn = (entries: Entry[]) =>
  entries
    .filter(({ action }) => action.startsWith('user.'))
    .map(({ action, detail }) => `${action.slice('user.'.length)}${detail ? ` ${detail}` : ''}`)

const failuresIn = (entries: Entry[]) => entries.filter(({ action }) => action === 'user.sign-in-failed')

const invite = async (server: TestServer, user: { email: string; post: TestBrowser['post'] }) => {
  await addWorkspace(server, 'elsewhere')
  const link = await linkFor(server, user.email, 'owner', 'elsewhere')
  assert.equal((await user.post('/links/redeem', { link })).status, 200)
}

for (const engine of engines) {
  test(`${engine}: sign-in and sign-out are in the log of each workspace, with IP address`, async (t) => {
    const { server, ann } = await serveWithOwner(t, { engine })
    await invite(server, ann)
    const browser = openBrowser(server.url)
    assert.equal((await signIn(browser, ann.email)).status, 200)
    assert.equal((await browser.post('/sign-out')).status, 200)
    assert.equal((await browser.get('/session')).status, 401)
    for (const workspace of ['acme', 'elsewhere']) {
      const [out, signedIn] = await readLog(ann, workspace)
      assert.deepEqual(
        [out, signedIn].map((entry) => [entry?.action, entry?.detail, entry?.actor.name, entry?.address]),
        [
          ['user.signed-out', null, 'Ann', '127.0.0.1'],
          ['user.signed-in', 'password', 'Ann', '127.0.0.1'],
        ],
      )
    }
  })

  test(`${engine}: failed sign-ins are in the log once per minute and reason, with a count`, async (t) => {
    let now = Date.now()
    const { server, ann } = await serveWithOwner(t, { engine, clock: () => now })
    const guess = async (times: number) => {
      const guesses = Array.from({ length: times }, () =>
        signIn(openBrowser(server.url), ann.email, 'a guess'),
      )
      for (const { status } of await Promise.all(guesses)) assert.equal(status, 401)
    }
    const counts = async () => failuresIn(await readLog(ann)).map(({ count }) => count)
    const recorded = (expected: number[]) =>
      until('recorded', async () => JSON.stringify(await counts()) === JSON.stringify(expected))
    await guess(3)
    await recorded([3])
    now += 61_000
    await guess(2)
    await recorded([2, 3])
    const [failure] = failuresIn(await readLog(ann))
    assert.deepEqual(failure?.actor, { kind: 'anonymous', id: '127.0.0.1', name: null })
    assert.deepEqual(
      [failure?.target.name, failure?.detail, failure?.address],
      ['Ann', 'password', '127.0.0.1'],
    )
    assert.ok(!JSON.stringify(await readLog(ann)).includes('a guess'))
    const rows = await readRows(server.services, 'audit_log')
    assert.equal((await signIn(openBrowser(server.url), 'unknown@example.com', 'a guess')).status, 401)
    // Past the limit of attempts.
    now += 16 * 60_000
    await setDisabled(server.services, operator, ann.email, true)
    await signIn(openBrowser(server.url), ann.email)
    await setDisabled(server.services, operator, ann.email, false)
    const again = openBrowser(server.url)
    await signIn(again, ann.email)
    await until('recorded', async () => failuresIn(await readLog(again)).length === 3)
    assert.equal(failuresIn(await readLog(again))[0]?.detail, 'disabled')
    const later = await readRows(server.services, 'audit_log')
    assert.equal(later.length - rows.length, 4, 'an unknown address is not logged')
  })

  test(`${engine}: two-factor authentication, passwords and sessions are in the log`, async (t) => {
    const { server, ann } = await serveWithOwner(t, { engine })
    const begin = async () => {
      const browser = openBrowser(server.url)
      assert.equal((await signIn(browser, ann.email)).json.next, 'code')
      return browser
    }
    await ann.post('/account/two-factor', { password: 'wrong password' })
    const { secret, recoveryCodes } = (await ann.post('/account/two-factor', { password: PASSWORD })).json
    await ann.post('/account/two-factor/confirm', { code: '000000' })
    const code = generateCode(secret)
    assert.equal((await ann.post('/account/two-factor/confirm', { code })).status, 200)
    const first = await begin()
    assert.equal((await first.post('/sign-in/code', { code: '000000' })).status, 401)
    assert.equal((await first.post('/sign-in/code', { code })).status, 401, 'used before')
    assert.equal((await first.post('/sign-in/code', { code: generateCode(secret, 1) })).status, 200)
    const second = await begin()
    assert.equal((await second.post('/sign-in/code', { code: 'aaaaa-bbbbb' })).status, 401)
    assert.equal((await second.post('/sign-in/code', { code: recoveryCodes[0] })).status, 200)
    const { sessions } = (await ann.get('/account/sessions')).json
    const other = sessions.find(({ isThis }: { isThis: boolean }) => !isThis)
    assert.equal((await ann.remove(`/account/sessions/${other.id}`)).status, 200)
    assert.equal((await ann.post('/account/two-factor/disable', { password: PASSWORD })).status, 200)
    const password = 'another good password'
    await ann.post('/account/password', { current: 'wrong password', password })
    assert.equal((await ann.post('/account/password', { current: PASSWORD, password })).status, 200)
    const entries = await readLog(ann)
    assert.deepEqual(actsIn(entries), [
      'password-changed',
      'two-factor-disabled',
      'session-ended',
      'signed-in recovery-code',
      'sign-in-failed recovery-code',
      'signed-in code',
      'sign-in-failed code',
      'two-factor-enabled',
      'confirmation-failed code',
      'two-factor-started',
      'confirmation-failed password',
      'signed-in password',
      'joined',
      'invited',
    ])
    const findCount = (act: string) => entries.find((entry) => actsIn([entry])[0] === act)?.count
    assert.equal(findCount('sign-in-failed code'), 2, 'a code that was used before counts')
    assert.equal(findCount('confirmation-failed password'), 2)
    assert.ok(!JSON.stringify(entries).includes(recoveryCodes[0]))
  })

  test(`${engine}: a reset password is in the log of each workspace`, async (t) => {
    const { server, ann } = await serveWithOwner(t, { engine })
    await invite(server, ann)
    const [user = assert.fail()] = await readRows(server.services, 'users')
    const { secret: link } = await createResetLink(server.services, operator, user)
    const browser = openBrowser(server.url)
    assert.equal((await browser.post('/links/redeem', { link, password: 'a new good one' })).status, 200)
    for (const workspace of ['acme', 'elsewhere'])
      assert.deepEqual(actsIn(await readLog(browser, workspace)).slice(0, 3), [
        'signed-in password',
        'password-reset',
        'reset-link-created',
      ])
  })

  test(`${engine}: single sign-on is in the log, also if it is rejected`, async (t) => {
    const provider = await startHostileProvider(t)
    const env = { ...provider.env, ADIT_OIDC_LINK_BY_EMAIL: 'true' }
    const { server, ann } = await serveWithOwner(t, { engine, env })
    await provider.signIn(openBrowser(server.url), 'ann', { claims: { email_verified: 'true' } })
    await provider.signIn(openBrowser(server.url), 'ann')
    await provider.signIn(openBrowser(server.url), 'ann', { claims: { sub: 'another user' } })
    await provider.signIn(openBrowser(server.url), 'mallory')
    assert.deepEqual(actsIn(await readLog(ann)).slice(0, 4), [
      'sign-in-failed sso-not-linked',
      'signed-in sso',
      'identity-linked',
      'sign-in-failed sso-email-unverified',
    ])
  })

  test(`${engine}: members see their own sign-in entries, admins and owners all`, async (t) => {
    const server = await serve(t, { engine })
    const members = []
    for (const role of ['owner', 'admin', 'member'] as const)
      members.push(await addMember(server, role, role))
    const [owner, admin, member] = members as [(typeof members)[0], (typeof members)[0], (typeof members)[0]]
    const signedIn = async (browser: TestBrowser) =>
      (await readLog(browser))
        .filter(({ action }) => action === 'user.signed-in')
        .map(({ actor }) => actor.name)
    for (const browser of [owner, admin])
      assert.deepEqual(await signedIn(browser), ['member', 'admin', 'owner'])
    assert.deepEqual(await signedIn(member), ['member'])
  })

  test(`${engine}: entries have the target, what changed and the address of the actor`, async (t) => {
    const { server, ann } = await serveWithOwner(t, { engine })
    const bob = await addMember(server, 'Bob', 'member')
    const { members } = (await ann.get('/workspaces/acme/members')).json
    const { id } = members.find(({ name }: { name: string }) => name === 'Bob')
    assert.equal((await ann.post(`/workspaces/acme/members/${id}`, { role: 'admin' })).status, 200)
    assert.equal((await bob.post('/account/name', { name: 'Robert' })).status, 200)
    const rules = { basicAuth: { user: 'guest', password: 'a secret' }, allowIp: ['192.0.2.0/24'] }
    assert.equal((await ann.post('/workspaces/acme/names/app/access', rules)).status, 200)
    assert.equal((await server.post('/tokens', { label: 'ci' })).status, 201)
    const entries = await readLog(ann)
    assert.deepEqual(
      entries
        .slice(0, 4)
        .map(({ action, target, changes, address }) => [action, target.kind, changes, address]),
      [
        ['key.created', 'key', { label: [null, 'ci'] }, '127.0.0.1'],
        [
          'name.rules-changed',
          'name',
          { user: [null, 'guest'], allowIp: [null, ['192.0.2.0/24']], password: [null, '(hidden)'] },
          '127.0.0.1',
        ],
        ['user.renamed', 'user', { name: ['Bob', 'Robert'] }, '127.0.0.1'],
        ['user.made-admin', 'user', { role: ['member', 'admin'] }, '127.0.0.1'],
      ],
    )
    assert.doesNotMatch(JSON.stringify(entries), /a secret/)
  })

  test(`${engine}: the log is filtered by actor, action, target and time`, async (t) => {
    let now = Date.UTC(2026, 10, 15, 12)
    const { server, ann } = await serveWithOwner(t, { engine, clock: () => now })
    const bob = await addMember(server, 'Bob', 'admin')
    const create = async (by: TestBrowser, label: string) => {
      now += 60_000
      return (await by.post('/workspaces/acme/keys', { label })).json.id
    }
    const first = await create(ann, 'a')
    await create(bob, 'b')
    await create(ann, 'c')
    assert.equal((await bob.remove(`/workspaces/acme/keys/${first}`)).status, 200)
    const { members } = (await ann.get('/workspaces/acme/members')).json
    const annId = members.find(({ name }: { name: string }) => name === 'Ann').id
    const list = async (filter: Record<string, string>, by: TestBrowser = ann) => {
      const { entries } = (await by.get(`/workspaces/acme/audit?${new URLSearchParams(filter)}`)).json
      return entries
        .filter((entry: Entry) => entry.action.startsWith('key.'))
        .map((entry: Entry) => `${entry.action} ${entry.target.name}`)
    }
    assert.deepEqual(await list({ actor: annId }), ['key.created c', 'key.created a'])
    assert.deepEqual(await list({ action: 'key.revoked' }), ['key.revoked a'])
    assert.deepEqual(await list({ target: first }), ['key.revoked a', 'key.created a'])
    assert.deepEqual(await list({ target: first, action: 'key.created' }), ['key.created a'])
    const at = (minutes: number) => new Date(Date.UTC(2026, 10, 15, 12, minutes)).toISOString()
    assert.deepEqual(await list({ from: at(2), to: at(3) }), ['key.created b'])
  })

  test(`${engine}: a request examines a limited number of entries, and the next one continues`, async (t) => {
    const server = await serve(t, { engine })
    const { services, workspace, key } = server
    const ann = await addMember(server, 'Ann', 'owner')
    const findEntry = (action: AuditAction) =>
      createAuditRow(services, {
        workspaceId: workspace.id,
        actor: { kind: 'key', id: key.id, userId: null, managesKeys: true },
        action,
        target: { id: key.id },
      })
    const entries = Array.from({ length: 2_500 }, (_, index) =>
      findEntry(index === 0 ? 'key.revoked' : 'key.created'),
    )
    await services.store.transaction((db) => insertAudit(db, entries))
    const url = `/workspaces/acme/audit?actor=${key.id}&action=key.revoked`
    const first = (await ann.get(url)).json
    assert.deepEqual(first.entries, [])
    const second = (await ann.get(`${url}&cursor=${first.next}`)).json
    assert.deepEqual([second.entries[0].id, second.entries.length, second.next], [entries[0]?.id, 1, null])
    const filter = { actor: key.id, action: 'key.revoked' }
    const { text } = await ann.post('/workspaces/acme/audit/export', { format: 'ndjson', ...filter })
    assert.equal(JSON.parse(text).id, entries[0]?.id, 'the export has it')
  })

  test(`${engine}: admins and owners export what matches as CSV or NDJSON, which is an entry itself`, async (t) => {
    const { server, ann } = await serveWithOwner(t, { engine })
    const bob = await addMember(server, 'Bob', 'member')
    const label = '=HYPERLINK("https://evil.example")'
    await ann.post('/workspaces/acme/keys', { label })
    const exportAs = (format: string, filter = {}, by: TestBrowser = ann) =>
      by.post('/workspaces/acme/audit/export', { format, ...filter })
    const csv = await exportAs('csv', { action: 'key.created' })
    assert.equal(csv.status, 200)
    assert.match(csv.headers.get('content-type') ?? '', /^text\/csv/)
    assert.equal(csv.headers.get('content-disposition'), 'attachment; filename="adit-audit.csv"')
    const [header, row] = csv.text.split('\r\n')
    assert.match(header ?? '', /^time,actor kind,actor,actor id,action,target kind,target/)
    assert.match(row ?? '', /,user,Ann,usr_\w+,key.created,key,"'=HYPERLINK\(""https:/)
    // More than one slice.
    const rows = await readRows(server.services, 'audit_log')
    const sample = rows.find(({ action }) => action === 'key.created') ?? assert.fail()
    const idOf = (number: number) => `aud_0000000000${String(number).padStart(16, '0')}`
    const many = Array.from({ length: 1_200 }, (_, number) => ({ ...sample, id: idOf(number) }))
    await addRows(server.services, 'audit_log', ...many)
    const ndjson = (await exportAs('ndjson')).text.trimEnd().split('\n')
    assert.equal(ndjson.length, rows.length + 1_200 + 1, 'with the entry of this export')
    const exports = ndjson.map((line) => JSON.parse(line)).filter(({ action }) => action === 'audit.exported')
    assert.deepEqual(pluck(exports, 'changes'), [
      { format: [null, 'ndjson'] },
      { format: [null, 'csv'], action: [null, 'key.created'] },
    ])
    assert.equal((await exportAs('csv', {}, bob)).status, 403)
    assert.equal((await exportAs('xml')).status, 400)
  })
}
