// Variant B: members request API keys, admins and owners approve, and the key is created when it is picked
// up.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Role } from '../../../src/contract/operation.ts'
import { REQUESTS_PER_DAY } from '../../../src/server/domain/keys/requests.ts'
import { sendNoticeMails } from '../../../src/server/domain/notices/mails.ts'
import { createMail } from '../../../src/server/mail.ts'
import { poll, startDevice } from '../../support/accounts/devices.ts'
import { startMailServer } from '../../support/accounts/mail-server.ts'
import { addMember } from '../../support/accounts/users.ts'
import { serve } from '../../support/api/server.ts'
import type { Test } from '../../support/cleanup.ts'
import { engines } from '../../support/databases/create.ts'
import { createRun } from '../../support/databases/maintenance-run.ts'
import { addRows, readRows, setRows } from '../../support/databases/rows.ts'
import { pluck } from '../../support/pluck.ts'

const DAY = 86_400_000
const REQUESTS = '/workspaces/acme/key-requests'

type Member = Awaited<ReturnType<typeof addMember>>

async function setUp(t: Test, engine: (typeof engines)[number]) {
  const clock = { now: Date.now() }
  const server = await serve(t, { engine, env: { ADIT_API_VARIANT: 'B' }, clock: () => clock.now })
  let count = 0
  const join = (role: Role) => addMember(server, `User${++count}`, role)
  const [olga, adam] = [await addMember(server, 'Olga', 'owner'), await addMember(server, 'Adam', 'admin')]
  const request = async (user: Member, label = 'laptop') => {
    const { status, json, text } = await user.post(REQUESTS, { label })
    assert.equal(status, 201, text)
    return json.id as string
  }
  const approve = (id: string, by = adam) => by.post(`${REQUESTS}/${id}/approve`)
  /** Makes all requests older. Moving the clock instead would end the sessions. */
  const age = (ms: number) =>
    server.services.store.transaction((db) =>
      db
        .updateTable('key_requests')
        .set((row) => ({ created_at: row('created_at', '-', ms), expires_at: row('expires_at', '-', ms) }))
        .execute(),
    )
  const pickUp = (user: Member, id: string) => user.post(`${REQUESTS}/${id}/key`)
  const readState = async (user: Member, id: string) =>
    (await user.get(REQUESTS)).json.requests.find((each: { id: string }) => each.id === id)?.state
  const actions = async (id: string) =>
    pluck(await readRows(server.services, 'audit_log', { target_id: id }), 'action').sort()
  return { server, clock, olga, adam, join, request, approve, age, pickUp, readState, actions }
}

const deployments = await Promise.all(engines.map((engine) => setUp({ after }, engine)))

for (const [index, engine] of engines.entries()) {
  const shared = deployments[index] as Awaited<ReturnType<typeof setUp>>
  const { server, clock, olga, adam, join, request, approve, age, pickUp, readState, actions } = shared

  test(`${engine}: members neither create, rotate nor revoke keys, and the response says what to do`, async () => {
    const mia = await join('member')
    const created = await mia.post('/workspaces/acme/keys', { personal: true })
    assert.equal(created.status, 403)
    assert.match(created.json.message, /Only admins and owners .* create API keys\. Request one from them\./)
    const rotated = await mia.post(`/workspaces/acme/keys/${server.key.id}/rotate`, { overlap: 'none' })
    assert.equal(rotated.status, 403, rotated.text)
    const revoked = await mia.remove(`/workspaces/acme/keys/${server.key.id}`)
    assert.deepEqual([revoked.status, /Ask one of them/.test(revoked.json.message)], [403, true])
    assert.equal((await server.call('GET', '/workspace')).status, 200)
    const unneeded = await olga.post(REQUESTS, {})
    assert.deepEqual([unneeded.status, unneeded.json.message], [409, 'You can create API keys yourself.'])
  })

  test(`${engine}: an approved request becomes one key, which only the member who asked gets`, async () => {
    const [mia, max] = [await join('member'), await join('member')]
    const id = await request(mia)
    const { notices } = (await adam.get('/workspaces/acme/notices')).json
    assert.ok(notices.some((notice: { request?: { id: string } }) => notice.request?.id === id))
    assert.equal((await pickUp(mia, id)).status, 409, 'not approved yet')
    assert.equal((await mia.post(`${REQUESTS}/${id}/approve`)).status, 403)
    assert.equal((await max.get(REQUESTS)).json.requests.length, 0, 'requests of others are not listed')
    assert.deepEqual((await approve(id)).json, { id, state: 'approved' })
    assert.equal((await approve(id)).status, 409, 'decided already')
    for (const other of [max, adam]) {
      const { status, text } = await pickUp(other, id)
      assert.deepEqual([status, text], [404, '{"error":"not_found"}'])
    }
    const picked = await Promise.all([1, 2, 3].map(() => pickUp(mia, id)))
    assert.deepEqual(picked.map(({ status }) => status).sort(), [201, 409, 409])
    const key = picked.find(({ status }) => status === 201)
    assert.equal(key?.headers.get('cache-control'), 'no-store')
    assert.equal((await server.call('GET', '/workspace', { key: key?.json.token })).status, 200)
    const [listed] = (await mia.get('/workspaces/acme/keys?owner=me')).json.keys
    assert.deepEqual([listed.id, listed.label, listed.user.isYou], [key?.json.id, 'laptop', true])
    assert.equal(await readState(mia, id), 'used')
    assert.deepEqual(await actions(id), ['key.request-approved', 'key.requested'])
    const [entry] = (await olga.get('/workspaces/acme/audit?action=key.created&limit=1')).json.entries
    assert.deepEqual([entry.actor.id, entry.changes.approvedBy], [mia.id, [null, 'Adam']])
  })

  test(`${engine}: an approval is void after 24 hours, or once the approver may no longer create keys`, async () => {
    const cases: [string, (approver: Member) => unknown][] = [
      ['demoted', (user) => olga.post(`/workspaces/acme/members/${user.id}`, { role: 'member' })],
      ['removed', (user) => olga.remove(`/workspaces/acme/members/${user.id}`)],
      ['policy', () => olga.post('/workspaces/acme/policy', { keyCreators: 'owner' })],
      ['late', () => age(DAY)],
    ]
    for (const [name, voidApproval] of cases) {
      const [mia, approver] = [await join('member'), await join('admin')]
      const id = await request(mia)
      assert.equal((await approve(id, approver)).status, 200)
      await voidApproval(approver)
      const rejected = await pickUp(mia, id)
      await olga.post('/workspaces/acme/policy', { keyCreators: 'admin' })
      assert.equal(rejected.status, 409, name)
      assert.match(rejected.json.message, name === 'late' ? /has expired/ : /may no longer create API keys/)
      if (name !== 'late')
        assert.equal((await mia.remove(`${REQUESTS}/${id}`)).status, 200, 'it can be withdrawn')
      await request(mia)
    }
  })

  test(`${engine}: the policy of the workspace holds when a key is picked up`, async () => {
    const mia = await join('member')
    const id = await request(mia)
    assert.equal((await approve(id)).status, 200)
    const { store } = server.services
    const attempt = async (columns: object) => {
      const set = (values: object) =>
        store.transaction((db) =>
          db.updateTable('workspaces').set(values).where('id', '=', server.workspace.id).execute(),
        )
      await set(columns)
      const response = await pickUp(mia, id)
      await set(Object.fromEntries(Object.keys(columns).map((name) => [name, null])))
      return response
    }
    assert.match((await attempt({ two_factor_required_at: 1 })).text, /two-factor authentication/)
    assert.match((await attempt({ archived_at: 1 })).text, /archived/)
    const { status, json } = await attempt({ key_days_max: 30 })
    const lifeMs = Date.parse(json.expiresAt) - Date.parse(json.createdAt)
    assert.deepEqual([status, Math.round(lifeMs / DAY)], [201, 30])
  })

  test(`${engine}: a demotion that races with an approval and its pick-up leaves no key without authority`, async () => {
    for (let round = 0; round < 5; round++) {
      const [mia, approver] = [await join('member'), await join('admin')]
      const id = await request(mia)
      const [approved] = await Promise.all([
        approve(id, approver),
        olga
          .post(`/workspaces/acme/members/${approver.id}`, { role: 'member' })
          .then(({ status }) => assert.equal(status, 200)),
      ])
      assert.ok([200, 403].includes(approved.status), approved.text)
      assert.equal((await pickUp(mia, id)).status, 409, `round ${round}`)
    }
  })

  test(`${engine}: requests are declined, withdrawn, expire, and are limited`, async () => {
    const mia = await join('member')
    const first = await request(mia)
    assert.equal((await mia.post(REQUESTS, {})).status, 409, 'one at a time')
    assert.equal((await adam.post(`${REQUESTS}/${first}/decline`)).json.state, 'declined')
    assert.equal(await readState(mia, first), 'declined')
    assert.equal((await approve(first)).status, 409)
    for (let n = 1; n < REQUESTS_PER_DAY; n++) {
      const id = await request(mia)
      assert.equal((await mia.remove(`${REQUESTS}/${id}`)).status, 200)
      assert.deepEqual(await actions(id), ['key.request-withdrawn', 'key.requested'])
      assert.equal((await pickUp(mia, id)).status, 409)
    }
    assert.match((await mia.post(REQUESTS, {})).json.message, /within a day, which is the limit/)
    await age(DAY)
    const last = await request(mia)
    await age(7 * DAY)
    assert.equal((await approve(last)).status, 409)
    assert.equal(await readState(mia, last), 'expired')
    assert.equal((await adam.remove(`${REQUESTS}/${last}`)).status, 404)
  })

  test(`${engine}: removing a member withdraws their requests, even if they join again`, async () => {
    const mia = await join('member')
    const id = await request(mia)
    assert.equal((await approve(id)).status, 200)
    assert.equal((await olga.remove(`/workspaces/acme/members/${mia.id}`)).status, 200)
    assert.deepEqual(await actions(id), ['key.request-approved', 'key.request-withdrawn', 'key.requested'])
    const member = {
      workspace_id: server.workspace.id,
      user_id: mia.id,
      role: 'member',
      created_at: 1,
    } as const
    await addRows(server.services, 'members', member)
    assert.equal((await pickUp(mia, id)).status, 409)
  })

  test(`${engine}: a terminal waits for the approval and gets the key, also after a second sign-in`, async () => {
    const mia = await join('member')
    const signIn = async () => {
      const device = await startDevice(server.url, 'mias-laptop')
      const [acme] = (await mia.post('/devices/read', { code: device.userCode })).json.workspaces
      assert.deepEqual([acme.obstacle, acme.needsRequest], [null, true])
      const approved = await mia.post('/workspaces/acme/devices', { code: device.userCode })
      assert.equal(approved.status, 200, approved.text)
      return device.deviceCode
    }
    const pollLater = (code: string) => {
      clock.now += 5_000
      return poll(server.url, code)
    }
    const first = await signIn()
    const waiting = await pollLater(first)
    assert.equal(waiting.json.error, 'authorization_pending')
    assert.match(waiting.json.error_description, /Waiting for an admin or owner/)
    const [{ id }] = (await mia.get(REQUESTS)).json.requests
    clock.now += 600_000
    const stopped = await pollLater(first)
    assert.deepEqual([stopped.json.error, stopped.json.request], ['expired_token', 'pending'])
    assert.match(stopped.json.error_description, /Run `adit login` again/)
    const second = await signIn()
    assert.equal((await mia.get(REQUESTS)).json.requests.length, 1, 'the same request')
    assert.equal((await pollLater(second)).json.error, 'authorization_pending')
    assert.equal((await approve(id)).status, 200)
    const granted = await pollLater(second)
    assert.equal(granted.status, 200, granted.text)
    assert.deepEqual([granted.json.label, granted.json.approved_by], ['mias-laptop', 'Adam'])
    assert.equal((await server.call('GET', '/workspace', { key: granted.json.access_token })).status, 200)
    const third = await signIn()
    const [next] = (await mia.get(REQUESTS)).json.requests
    assert.equal((await adam.post(`${REQUESTS}/${next.id}/decline`)).status, 200)
    const declined = await pollLater(third)
    assert.equal(declined.json.error, 'access_denied')
    assert.match(declined.json.error_description, /was declined/)

    const fourth = await signIn()
    const [last] = (await mia.get(REQUESTS)).json.requests
    assert.equal((await approve(last.id)).status, 200)
    const setQuota = (quota_keys: number | null) =>
      setRows(server.services, 'workspaces', { quota_keys }, { id: server.workspace.id })
    await setQuota(1)
    assert.match((await pollLater(fourth)).json.error_description, /1 active API keys, which is the limit/)
    assert.equal(await readState(mia, last.id), 'approved', 'no key was created')
    await setQuota(null)
    assert.equal((await pickUp(mia, last.id)).status, 201)
  })
}

test('requests and decisions are mailed to admins and owners, and to the member who asked', async (t) => {
  const { emails, env } = await startMailServer(t)
  const server = await serve(t, {
    engine: 'sqlite',
    env: { ...env, ADIT_API_VARIANT: 'B' },
  })
  const [adam, mia] = [await addMember(server, 'Adam', 'admin'), await addMember(server, 'Mia', 'member')]
  for (const [name, role] of [
    ['Olga', 'owner'],
    ['Max', 'member'],
  ] as const)
    await addMember(server, name, role)
  /** The emails that the next run of the maintenance job sends, which have the same text. */
  const receive = async (...to: string[]) => {
    await sendNoticeMails(createRun(server.services), {
      publicUrl: () => 'https://adit.example.com',
      send: createMail({ url: env.ADIT_SMTP_URL, from: env.ADIT_MAIL_FROM }),
      onFailure: (error) => assert.fail(String(error)),
    })
    const received = emails.splice(0)
    assert.deepEqual(received.map((email) => email.to).sort(), to)
    return received[0]?.text.replaceAll(/\s+/g, ' ') ?? ''
  }
  const requestKey = async () => {
    const { status, json, text } = await mia.post(REQUESTS, { label: 'laptop' })
    assert.equal(status, 201, text)
    return json.id as string
  }

  const approved = await requestKey()
  const notice = await receive('adam@example.com', 'olga@example.com')
  assert.match(notice, /Subject: A workspace on Adit has a request for an API key/)
  assert.match(notice, /Mia requests an API key\. Approve or decline it within 7 days:/)
  assert.match(notice, /https:\/\/adit\.example\.com\/w\/acme\/keys/)
  assert.equal((await adam.post(`${REQUESTS}/${approved}/approve`)).status, 200)
  const approval = await receive('mia@example.com')
  assert.match(approval, /has approved your request for an API key/)
  assert.match(approval, /Run `adit login` again within 24 hours, or create the key in the dashboard:/)
  assert.equal((await mia.post(`${REQUESTS}/${approved}/key`)).status, 201)

  const declined = await requestKey()
  await receive('adam@example.com', 'olga@example.com')
  assert.equal((await adam.post(`${REQUESTS}/${declined}/decline`)).status, 200)
  assert.match(await receive('mia@example.com'), /has declined your request for an API key/)
})
