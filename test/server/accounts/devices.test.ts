// Sign-in from a terminal: device authorization (RFC 8628), its approval in the dashboard, and the API key.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setDisabled } from '../../../src/server/domain/accounts/users.ts'
import { pollDevice } from '../../../src/server/domain/devices/device-keys.ts'
import { WINDOW_MS } from '../../../src/server/http/limits/attempt-counts.ts'
import { DEVICE_GRANT, poll, postForm, startDevice } from '../../support/accounts/devices.ts'
import { addMember, openBrowser, serveWithOwner } from '../../support/accounts/users.ts'
import { createResponseValidator } from '../../support/api/openapi.ts'
import { addNode, operator, type TestServer, type TestServerOptions } from '../../support/api/server.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { engines } from '../../support/databases/create.ts'
import { addRows, readRows, setRows } from '../../support/databases/rows.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

async function setUp(t: Test, options: TestServerOptions) {
  const clock = { now: Date.now() }
  const { server, ann } = await serveWithOwner(t, { ...options, clock: () => clock.now })
  const approve = (userCode: string, by = ann, more = {}) =>
    by.post('/workspaces/acme/devices', { code: userCode, ...more })
  /** After the interval. */
  const pollLater = (deviceCode: string) => {
    clock.now += 5_000
    return poll(server.url, deviceCode)
  }
  return { server, clock, ann, approve, pollLater }
}

type Deployment = Awaited<ReturnType<typeof setUp>>

const findKeys = ({ services }: TestServer, label: string) => readRows(services, 'api_keys', { label })

/** Before the first test: the end of a file is when no test is left. */
const deployments = await Promise.all(engines.map((engine) => setUp({ after }, { engine })))
const behindProxy = await setUp({ after }, { engine: 'sqlite', env: { ADIT_TRUSTED_PROXIES: '127.0.0.1' } })

for (const [index, engine] of engines.entries()) {
  const shared = deployments[index] as Deployment
  const setPolicy = async (change: object) => {
    const { services, workspace } = shared.server
    await setRows(services, 'workspaces', change, { id: workspace.id })
  }

  test(`${engine}: an approved device gets one API key, with its name as label and the chosen expiry`, async () => {
    const { server, clock, ann, approve, pollLater } = shared
    const { deviceCode, userCode, json } = await startDevice(server.url)
    assert.match(userCode, /^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/)
    assert.equal(json.verification_uri, `${server.url}/device`)
    assert.equal(json.verification_uri_complete, `${server.url}/device?code=${userCode}`)
    assert.deepEqual([json.expires_in, json.interval], [600, 5])
    const pending = await poll(server.url, deviceCode)
    assert.deepEqual([pending.status, pending.json.error], [400, 'authorization_pending'])
    const read = await ann.post('/devices/read', { code: userCode.toLowerCase().replace('-', ' ') })
    assert.deepEqual(read.json, {
      code: userCode,
      deviceName: 'anns-laptop',
      address: '127.0.0.1',
      requestedAt: read.json.requestedAt,
      expiresAt: new Date(Date.parse(read.json.requestedAt) + 10 * MINUTE).toISOString(),
      state: 'pending',
      failureReason: null,
      awaitsKeyApproval: false,
      workspaces: [{ slug: 'acme', name: 'Acme', keyDaysMax: null, obstacle: null, needsRequest: false }],
    })
    const expiresAt = new Date(clock.now + 30 * DAY).toISOString()
    assert.equal((await approve(userCode, ann, { expiresAt })).json.state, 'approved')
    assert.equal((await findKeys(server, 'anns-laptop')).length, 0, 'created by the poll')
    const granted = await pollLater(deviceCode)
    assert.equal(granted.status, 200, granted.text)
    assert.equal(granted.headers.get('cache-control'), 'no-store')
    const { access_token: token, expires_in: expiresIn, ...rest } = granted.json
    const [key] = await findKeys(server, 'anns-laptop')
    assert.deepEqual(rest, {
      token_type: 'Bearer',
      key_id: key?.id,
      label: 'anns-laptop',
      workspace: 'acme',
      approved_by: 'Ann',
    })
    assert.ok(Math.abs(expiresIn - 30 * 86_400) < 10, expiresIn)
    assert.equal(key?.created_by, 'Ann')
    assert.equal((await server.call('GET', '/workspace', { key: token })).json.slug, 'acme')
    assert.equal((await ann.post('/devices/read', { code: userCode })).json.state, 'consumed')
  })

  test(`${engine}: the response with the key is repeated for a minute, and neither it nor the code is stored`, async () => {
    const { server, clock, approve, pollLater } = shared
    const { deviceCode, userCode } = await startDevice(server.url, 'repeated')
    await approve(userCode)
    const first = await pollLater(deviceCode)
    assert.equal(first.status, 200)
    assert.deepEqual((await pollLater(deviceCode)).json, first.json)
    const stored = JSON.stringify(await readRows(server.services, 'device_authorizations'))
    for (const secret of [deviceCode, first.json.access_token]) assert.ok(!stored.includes(secret))
    clock.now += MINUTE
    const late = await pollLater(deviceCode)
    assert.deepEqual([late.status, late.json.error], [400, 'invalid_grant'])
    assert.equal((await findKeys(server, 'repeated')).length, 1)
  })

  test(`${engine}: a denied or expired request never becomes a key`, async () => {
    const { server, clock, ann, approve, pollLater } = shared
    const denied = await startDevice(server.url, 'never')
    assert.equal((await ann.post('/devices/deny', { code: denied.userCode })).json.state, 'denied')
    assert.equal((await approve(denied.userCode)).status, 409)
    const [entry] = await readRows(server.services, 'audit_log', { target_id: denied.userCode })
    const expected = { action: 'device.denied', workspace_id: null, actor_id: ann.id, target_name: 'never' }
    assert.partialDeepStrictEqual({ ...entry }, expected)
    assert.equal((await pollLater(denied.deviceCode)).json.error, 'access_denied')
    const expired = await startDevice(server.url, 'never')
    const tooLate = await startDevice(server.url, 'never')
    assert.equal((await approve(tooLate.userCode)).status, 200)
    clock.now += 10 * MINUTE
    assert.equal((await approve(expired.userCode)).status, 404)
    assert.equal((await ann.post('/devices/read', { code: expired.userCode })).status, 404)
    for (const { deviceCode } of [expired, tooLate])
      assert.equal((await pollLater(deviceCode)).json.error, 'expired_token')
    assert.equal((await findKeys(server, 'never')).length, 0)
  })

  test(`${engine}: concurrent polls create one key, also on several nodes`, async (t) => {
    const { server, approve } = shared
    const nodes = engine === 'postgres' ? [await addNode(t, server), await addNode(t, server)] : []
    for (let round = 0; round < 3; round++) {
      const name = `round-${round}`
      const { deviceCode, userCode } = await startDevice(server.url, name)
      assert.equal((await approve(userCode)).status, 200)
      const input = { deviceCode, address: '192.0.2.1' }
      const direct = await Promise.all([1, 2, 3].map(() => pollDevice(server.services, input)))
      const onNodes = await Promise.all(nodes.map(({ url }) => poll(url, deviceCode)))
      const tokens = [
        ...direct.map((result) => (result.state === 'granted' ? result.key.token : result.state)),
        ...onNodes.map(({ json }) => json.access_token),
      ]
      assert.equal(new Set(tokens).size, 1, 'the same response')
      assert.equal((await findKeys(server, name)).length, 1)
    }
  })

  test(`${engine}: of concurrent decisions about a device one wins`, async () => {
    const { server, ann, approve, pollLater } = shared
    const bob = await addMember(server, 'Bob', 'admin')
    for (let round = 0; round < 4; round++) {
      const { deviceCode, userCode } = await startDevice(server.url, `race-${round}`)
      const [first, second, denied] = await Promise.all([
        approve(userCode, ann),
        approve(userCode, bob),
        ann.post('/devices/deny', { code: userCode }),
      ])
      const byAnn = [first.status, denied.status].sort()
      // Other users learn nothing of a decision.
      if (second.status === 200) assert.deepEqual(byAnn, [404, 404])
      else assert.deepEqual([second.status, ...byAnn], [404, 200, 409])
      const { json } = await pollLater(deviceCode)
      if (denied.status === 200) assert.equal(json.error, 'access_denied')
      else assert.equal(json.approved_by, first.status === 200 ? 'Ann' : 'Bob')
    }
  })

  test(`${engine}: an approval is void if the user may not create keys when the device polls`, async (t) => {
    const { server, clock, ann, approve, pollLater } = shared
    const { services } = server
    const setSession = (userId: string, times: { expires_at: number } | { created_at: number }) =>
      setRows(services, 'sessions', times, { user_id: userId })
    const ended = /^The approval is no longer valid\. The session of the user who approved it has ended\.$/
    const past = new Date(clock.now + 5 * MINUTE).toISOString()
    const voids: [string, (user: typeof ann) => unknown, RegExp, object?][] = [
      ['signed out', (user) => user.post('/sign-out'), ended],
      ['session expired', (user) => setSession(user.id, { expires_at: clock.now }), ended],
      ['session too old', (user) => setSession(user.id, { created_at: clock.now - 14 * DAY }), ended],
      ['disabled', (user) => setDisabled(services, operator, user.email, true), ended],
      [
        'role lowered',
        async (user) => {
          await setPolicy({ key_creator_role: 'admin' })
          await ann.post(`/workspaces/acme/members/${user.id}`, { role: 'member' })
        },
        /no longer valid\. The policy of this workspace lets only admins and owners create API keys\./,
      ],
      [
        'removed',
        (user) => ann.remove(`/workspaces/acme/members/${user.id}`),
        /The user who approved it is no longer a member of the workspace\.$/,
      ],
      ['policy', () => setPolicy({ key_creator_role: 'owner' }), /policy of this workspace lets only owners/],
      ['archived', () => setPolicy({ archived_at: clock.now }), /This workspace is archived\./],
      ['two-factor', () => setPolicy({ two_factor_required_at: clock.now }), /requires two-factor/],
      ['expired', () => (clock.now += 5 * MINUTE), /expiresAt must be in the future\.$/, { expiresAt: past }],
    ]
    const open = { key_creator_role: null, archived_at: null, two_factor_required_at: null }
    atEnd(t, () => setPolicy(open))
    for (const [index, [name, change, reason, more]] of voids.entries()) {
      const user = await addMember(server, `User${index}`, 'admin')
      const { deviceCode, userCode } = await startDevice(server.url, name)
      assert.equal((await approve(userCode, user, more)).status, 200, name)
      await change(user)
      const { json } = await pollLater(deviceCode)
      await setPolicy(open)
      assert.equal(json.error, 'access_denied', name)
      assert.match(json.error_description, reason, name)
      assert.deepEqual((await pollLater(deviceCode)).json, json, `${name}: for good`)
      assert.equal((await findKeys(server, name)).length, 0, name)
      const [entry] = (await ann.get('/workspaces/acme/audit?action=device.failed')).json.entries
      assert.deepEqual([entry.target.name, entry.actor.id, entry.address], [name, user.id, '127.0.0.1'])
      assert.match(entry.changes.reason[1], reason)
      const seen = await user.post('/devices/read', { code: userCode })
      if (seen.status !== 401)
        assert.deepEqual([seen.json.state, seen.json.failureReason], ['failed', json.error_description])
    }
  })

  test(`${engine}: the audit log names the user who approved, and the addresses`, async () => {
    const { server, ann, approve, pollLater } = shared
    const { deviceCode, userCode } = await startDevice(server.url)
    await approve(userCode)
    const { key_id: id } = (await pollLater(deviceCode)).json
    const { entries } = (await ann.get('/workspaces/acme/audit')).json
    const [created, approved] = entries
    assert.deepEqual(
      [approved.action, approved.target, approved.changes],
      [
        'device.approved',
        { kind: 'device', id: userCode, name: 'anns-laptop' },
        { deviceAddress: [null, '127.0.0.1'] },
      ],
    )
    assert.deepEqual([created.action, created.target.id], ['key.created', id])
    for (const { actor, address } of [approved, created])
      assert.deepEqual([actor.name, address], ['Ann', '127.0.0.1'])
  })
}

test('guessing user codes is limited per user and per network', async () => {
  const { server, ann, approve } = behindProxy
  const bob = await addMember(server, 'Bob', 'owner')
  const { userCode } = await startDevice(server.url)
  const guess = (index: number) => `BBBB-BBB${'BCDFGHJKLMNPQRSTVWXZ'[index]}`
  for (let index = 0; index < 10; index++) {
    const path = index % 2 === 0 ? '/devices/read' : '/devices/deny'
    assert.equal((await ann.post(path, { code: guess(index) })).status, 404)
  }
  for (const path of ['/devices/read', '/devices/deny', '/workspaces/acme/devices'])
    assert.equal((await ann.post(path, { code: userCode })).status, 429, path)
  assert.equal((await bob.post('/devices/read', { code: userCode })).status, 200, 'another user')
  for (let index = 0; index < 10; index++) await bob.post('/devices/read', { code: guess(index) })
  for (const name of ['Cay', 'Dan']) {
    const user = await addMember(server, name, 'owner')
    for (let index = 0; index < 10; index++) await user.post('/devices/read', { code: guess(index) })
  }
  const eve = await addMember(server, 'Eve', 'owner')
  assert.equal((await approve(userCode, eve)).status, 429, 'the network')
  const elsewhere = { 'x-forwarded-for': '192.0.2.9' }
  assert.equal((await eve.call('POST', '/devices/read', { code: userCode }, elsewhere)).status, 200)
})

test('starting is limited per network and in total, and polling too soon is slow_down', async () => {
  const { server, clock } = behindProxy
  // The limits of the test above end.
  clock.now += WINDOW_MS
  const { deviceCode } = await startDevice(server.url)
  assert.equal((await poll(server.url, deviceCode)).json.error, 'authorization_pending')
  assert.equal((await poll(server.url, deviceCode)).json.error, 'slow_down')
  clock.now += 5_000
  assert.equal((await poll(server.url, deviceCode)).json.error, 'authorization_pending')
  for (let index = 1; index < 30; index++) await startDevice(server.url)
  const limited = await postForm(server.url, '/authorize', {})
  assert.equal(limited.status, 429)
  assert.ok(Number(limited.headers.get('retry-after')) > 0)
  const fromElsewhere = () => postForm(server.url, '/authorize', {}, { 'x-forwarded-for': '192.0.2.9' })
  assert.equal((await fromElsewhere()).status, 200)
  const [row = assert.fail()] = await readRows(server.services, 'device_authorizations')
  const waiting = { ...row, expires_at: clock.now + 10 * MINUTE }
  const many = Array.from({ length: 10_000 }, (_, n) => ({ ...waiting, hash: `h${n}`, user_code: `c${n}` }))
  await addRows(server.services, 'device_authorizations', ...many)
  assert.match((await fromElsewhere()).json.error_description, /Too many devices are waiting/)
  clock.now += 10 * MINUTE
  assert.equal((await fromElsewhere()).status, 200, 'they have expired')
})

test('requests of devices are validated forms, and every response is as described', async () => {
  const { server, clock } = deployments[0] as Deployment
  // The limit on starts.
  clock.now += WINDOW_MS
  const document = await (await fetch(`${server.url}/device/openapi.json`)).json()
  const validateResponse = createResponseValidator(document as never)
  const token = { grant_type: DEVICE_GRANT, device_code: 'x' }
  const cases: [string, Parameters<typeof postForm>[2], Record<string, string>, number, RegExp][] = [
    ['/authorize', {}, {}, 200, /"user_code"/],
    ['/authorize', { device_name: 'é😀', unknown: 'x', scope: '' }, {}, 200, /"user_code"/],
    ['/authorize', { device_name: 'x'.repeat(81) }, {}, 400, /not be longer than 80 characters/],
    ['/authorize', { device_name: 'a\u0000b' }, {}, 400, /U\+0000/],
    ['/authorize', { device_name: 'a\u202eb' }, {}, 400, /U\+202E/],
    ['/authorize', 'device_name=a&device_name=b', {}, 400, /must not repeat a parameter/],
    ['/authorize', '{}', { 'content-type': 'application/json' }, 400, /must be application\/x-www-form/],
    ['/authorize', {}, { origin: 'https://evil.example' }, 403, /Cross-site request rejected/],
    ['/authorize', {}, { origin: 'null' }, 403, /Cross-site request rejected/],
    ['/authorize', {}, { 'sec-fetch-site': 'cross-site' }, 403, /Cross-site request rejected/],
    ['/authorize', {}, { 'sec-fetch-site': 'same-site' }, 403, /Cross-site request rejected/],
    ['/authorize', {}, { origin: server.url, 'sec-fetch-site': 'same-origin' }, 200, /"user_code"/],
    ['/authorize', '__proto__=x&constructor=y', {}, 200, /"user_code"/],
    ['/token', {}, {}, 400, /"invalid_request".*grant_type, device_code/],
    ['/token', { ...token, device_code: 'é"'.repeat(200) }, {}, 400, /"invalid_request"/],
    ['/token', '{}', { 'content-type': 'application/json' }, 400, /"invalid_request"/],
    ['/token', { ...token, grant_type: 'password' }, {}, 400, /unsupported_grant_type/],
    ['/token', token, { origin: 'https://evil.example' }, 403, /Cross-site request rejected/],
    ['/token', token, {}, 400, /invalid_grant/],
    ['/token', { ...token, device_code: server.key.token }, {}, 400, /invalid_grant/],
  ]
  for (const [path, form, headers, status, body] of cases) {
    const response = await postForm(server.url, path, form, headers)
    assert.equal(response.status, status, `${JSON.stringify(form)} ${response.text}`)
    assert.match(response.text, body)
    assert.equal(response.headers.get('access-control-allow-origin'), null, 'no web page can read it')
    assert.equal(response.headers.get('cache-control'), 'no-store')
    if (status >= 400) {
      // The characters of RFC 6749, section 5.2.
      assert.match(response.json.error_description, /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/)
      assert.deepEqual(Object.keys(response.json), ['error', 'error_description'])
    }
    validateResponse(path, 'POST', response)
  }
  const inQuery = await postForm(server.url, `/token?${new URLSearchParams(token)}`, '')
  assert.match(inQuery.text, /invalid_request/, 'a code in the query is ignored')
  const signedOut = openBrowser(server.url)
  assert.equal((await signedOut.post('/devices/read', { code: 'BBBB-BBBB' })).status, 401)
})

test('a device without a name is shown and labeled as such', async () => {
  const { server, clock, ann } = deployments[0] as Deployment
  clock.now += WINDOW_MS
  for (const name of ['', '  ', '\u2800', ' \u2800\u00a0']) {
    const { userCode } = await startDevice(server.url, name)
    assert.equal((await ann.post('/devices/read', { code: userCode })).json.deviceName, 'unnamed device')
  }
})

test('members who may not create keys cannot approve, and other users learn nothing of a decision', async () => {
  const { server, ann, approve } = deployments[0] as Deployment
  const mia = await addMember(server, 'Mia', 'member')
  const policy = (keyCreators: string) => ann.post('/workspaces/acme/policy', { keyCreators })
  assert.equal((await policy('admin')).status, 200)
  const { userCode } = await startDevice(server.url)
  const [acme] = (await mia.post('/devices/read', { code: userCode })).json.workspaces
  assert.match(acme.obstacle, /policy of this workspace lets only admins and owners create API keys\. Ask/)
  const rejected = await approve(userCode, mia)
  assert.deepEqual([rejected.status, rejected.json.message], [403, acme.obstacle])
  assert.equal((await policy('member')).status, 200)
  assert.equal((await approve(userCode)).status, 200)
  for (const path of ['/devices/read', '/devices/deny'])
    assert.equal((await mia.post(path, { code: userCode })).status, 404, path)
  assert.equal((await ann.post('/devices/read', { code: userCode })).json.state, 'approved')
})
