// What of the audit log each role sees, and the limits of its filters and exports.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { printableJson } from '../../../src/contract/text.ts'
import { toCsv } from '../../../src/lib/csv.ts'
import { setDisabled } from '../../../src/server/domain/accounts/users.ts'
import { insertAudit } from '../../../src/server/store/audit/entries.ts'
import { lockWorkspace } from '../../../src/server/store/workspaces.ts'
import { startDevice } from '../../support/accounts/devices.ts'
import { addMember, serveWithOwner, signIn, type TestBrowser } from '../../support/accounts/users.ts'
import { operator, rename, serve, type TestServer } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { readRows } from '../../support/databases/rows.ts'
import { until } from '../../support/until.ts'

interface Entry {
  actor: { kind: string }
  action: string
  address: string | null
  changes: object
}

const LOG = '/workspaces/acme/audit'

const find = async (browser: TestBrowser, action: string): Promise<Entry> => {
  const { entries } = (await browser.get(`${LOG}?action=${action}`)).json
  return entries[0]
}

const countExports = async ({ services }: TestServer) =>
  (await readRows(services, 'audit_log', { action: 'audit.exported' })).length

for (const engine of engines) {
  test(`${engine}: members see the IP addresses of their own actions only`, async (t) => {
    const server = await serve(t, { engine })
    const [ann, bob] = [await addMember(server, 'Ann', 'owner'), await addMember(server, 'Bob', 'member')]
    for (const role of ['admin', 'member'])
      assert.equal((await ann.post(`/workspaces/acme/members/${bob.id}`, { role })).status, 200)
    const admin = { ...operator, address: 'host.example' }
    await setDisabled(server.services, admin, bob.email, true)
    await setDisabled(server.services, admin, bob.email, false)
    assert.equal((await signIn(bob, bob.email, 'a guess')).status, 401)
    assert.equal((await signIn(bob, bob.email)).status, 200)
    await until('the failure is recorded', async () => (await find(ann, 'user.sign-in-failed')) !== undefined)
    const addresses = async (browser: TestBrowser) => {
      const actions = ['made-member', 'disabled', 'enabled', 'sign-in-failed', 'signed-in']
      const found = await Promise.all(actions.map((action) => find(browser, `user.${action}`)))
      return found.map(({ address }) => address)
    }
    const [own, host] = ['127.0.0.1', 'host.example']
    assert.deepEqual(await addresses(ann), [own, host, host, own, own])
    assert.deepEqual(await addresses(bob), [null, null, null, own, own])
    const { userCode } = await startDevice(server.url)
    assert.equal((await ann.post('/workspaces/acme/devices', { code: userCode })).status, 200)
    await ann.post(`${LOG}/export`, { format: 'csv', actor: '192.0.2.7' })
    const changes = async (browser: TestBrowser) => {
      const found = await Promise.all(
        ['device.approved', 'audit.exported'].map((action) => find(browser, action)),
      )
      return found.map((entry) => entry.changes)
    }
    const format = [null, 'csv']
    assert.deepEqual(await changes(ann), [
      { deviceAddress: [null, own] },
      { format, actor: [null, '192.0.2.7'] },
    ])
    assert.deepEqual(await changes(bob), [{}, { format }])
  })

  test(`${engine}: members do not see actions on others that this version does not know`, async (t) => {
    const server = await serve(t, { engine })
    const [ann, bob] = [await addMember(server, 'Ann', 'owner'), await addMember(server, 'Bob', 'member')]
    const { store, ids } = server.services
    const signedIn = { action: 'user.signed-in', target_id: ann.id } as const
    const [row = assert.fail()] = await readRows(server.services, 'audit_log', signedIn)
    const action = 'user.passkey-added'
    const add = (target_id: string) =>
      store.transaction((tx) => insertAudit(tx, [{ ...row, id: ids('aud'), action, target_id }]))
    await add(ann.id)
    assert.equal((await find(ann, action)).action, action)
    assert.equal(await find(bob, action), undefined)
    await add(bob.id)
    assert.equal((await find(bob, action)).action, action)
  })

  test(`${engine}: an export is in the log only if it has started`, async (t) => {
    const { server, ann } = await serveWithOwner(t, { engine })
    const exportLog = () => ann.post(`${LOG}/export`, { format: 'ndjson' })
    const rejected = Promise.withResolvers<Awaited<ReturnType<typeof exportLog>>>()
    // Exports need the lock of the workspace, so they are all in progress until this one is released.
    const exports = await server.services.store.transaction(async (tx) => {
      await lockWorkspace(tx, server.workspace.id)
      const begun = Array.from({ length: 5 }, async () => {
        const response = await exportLog()
        if (response.status === 429) rejected.resolve(response)
        return response
      })
      const { json } = await rejected.promise
      assert.match(json.message, /exports .* at the same time\. Try again shortly\.$/)
      return begun
    })
    const statuses = (await Promise.all(exports)).map(({ status }) => status)
    assert.deepEqual(statuses.sort(), [200, 200, 200, 200, 429])
    assert.equal(await countExports(server), 4)
  })

  test(`${engine}: an export whose entry cannot be written fails before anything is sent`, async (t) => {
    const { server, ann } = await serveWithOwner(t, { engine })
    await rename(server, 'audit_log', 'audit_log_away')
    const { status, headers, json } = await ann.post(`${LOG}/export`, { format: 'csv' })
    await rename(server, 'audit_log_away', 'audit_log')
    assert.deepEqual([status, json.error], [500, 'internal'])
    assert.equal(headers.get('content-disposition'), null)
  })
}

test('a filter with a control or invisible character is rejected', async (t) => {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  for (const character of ['\u0000', '\u001b', '\u009b', '\u202e', '\u200b'])
    for (const field of ['actor', 'action', 'target']) {
      const text = `a${character}b`
      const listed = await ann.get(`${LOG}?${field}=${encodeURIComponent(text)}`)
      const exported = await ann.post(`${LOG}/export`, { format: 'csv', [field]: text })
      assert.deepEqual([listed.status, exported.status], [400, 400], JSON.stringify(text))
      assert.match(exported.text, /a control or invisible character/)
    }
  assert.equal(await countExports(server), 0)
})

test('exported JSON has controls escaped, and exported CSV no formulas', () => {
  const text = 'a\u007f\u009b31m\u2028\u202e\u2066b 👩‍💻'
  const json = printableJson({ text })
  assert.equal(json, '{"text":"a\\u007f\\u009b31m\\u2028\\u202e\\u2066b 👩‍💻"}')
  assert.deepEqual(JSON.parse(json), { text })
  const cells: [cell: string, exported: string][] = [
    ['a - b, c=d', '"a - b, c=d"'],
    ['=1', "'=1"],
    ['＝1', "'＝1"],
    [' ＠x', `"' ＠x"`],
    ['x =1', "x '=1"],
    [' =1', "' '=1"],
    ['x "=1', `"x '""=1"`],
    ['x;"=1', `"x;'""=1"`],
    ['x = 1', '"x = 1"'],
    ['x -1', '"x -1"'],
    ['x;=1', `"x;'=1"`],
    ['x\t +1', `"x\t' +1"`],
    ['x\n-1;@y', `"x\n'-1;'@y"`],
    ['\tx', `"'\tx"`],
    ['\t=1', `"'\t'=1"`],
  ]
  for (const [cell, exported] of cells) assert.equal(toCsv([[cell]]), `${exported}\r\n`)
})

test('a filter with a time that does not exist is rejected with the name of the field', async (t) => {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  const rejection = (field: string, place: string) => [
    400,
    [{ path: `/${place}/${field}`, message: 'must be an existing date and time' }],
  ]
  for (const field of ['from', 'to'])
    for (const time of ['2026-02-30T00:00:00Z', '2026-99-99T00:00:00Z', '2026-11-15T24:00:00Z']) {
      const listed = await ann.get(`${LOG}?${field}=${time}`)
      assert.deepEqual([listed.status, listed.json.details], rejection(field, 'query'), time)
      const exported = await ann.post(`${LOG}/export`, { format: 'csv', [field]: time })
      assert.deepEqual([exported.status, exported.json?.details], rejection(field, 'body'), time)
    }
  assert.equal(await countExports(server), 0)
})
