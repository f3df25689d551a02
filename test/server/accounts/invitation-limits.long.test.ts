// Limits on invitations per inviter, workspace and address.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  addMember,
  openBrowser,
  serveWithOwner,
  signIn,
  type TestBrowser,
} from '../../support/accounts/users.ts'
import { addWorkspace } from '../../support/api/server.ts'
import { createDatabase, engines } from '../../support/databases/create.ts'
import { SECRET } from '../../support/databases/migrated-databases.ts'
import { startServing } from '../../support/processes/process.ts'

/** Retries if the lock that counts invitations was not obtained in time, on a busy machine. */
async function invite(browser: TestBrowser, email: string, workspace = 'acme') {
  for (;;) {
    const response = await browser.post(`/workspaces/${workspace}/invitations`, { email, role: 'member' })
    if (response.status !== 503) return response
  }
}

const readStatuses = async (responses: Promise<{ status: number }>[]) =>
  Object.groupBy(await Promise.all(responses), ({ status }) => String(status))

for (const engine of engines) {
  test(`${engine}: an inviter can send 50 invitations in 24 hours, also concurrently`, async (t) => {
    const database = await createDatabase(t, engine)
    const env = { ADIT_DATABASE_URL: database, ADIT_SECRET: SECRET }
    let now = Date.now()
    const { server, ann } = await serveWithOwner(t, {
      engine,
      env,
      clock: () => now,
      hasCostlyPasswords: true,
    })
    const bob = await addMember(server, 'Bob', 'admin')
    const responses = await readStatuses(
      Array.from({ length: 60 }, (_, index) => invite(ann.browser, `n${index}@example.com`)),
    )
    assert.deepEqual([responses[201]?.length, responses[429]?.length], [50, 10])
    const rejected = await invite(ann.browser, 'one-more@example.com')
    assert.deepEqual([rejected.status, rejected.json.error], [429, 'rate_limited'])
    assert.match(rejected.json.message, /You have sent 50 invitations in 24 hours.*Try again in 24 hours\./)
    const retryAfter = Number(rejected.headers.get('retry-after'))
    assert.ok(retryAfter > 86_000 && retryAfter <= 86_400, String(retryAfter))
    assert.equal((await invite(bob.browser, 'of-bob@example.com')).status, 201, 'others may still invite')

    const elsewhere = await startServing(t, env)
    const there = openBrowser(elsewhere.url)
    await signIn(there, ann.email)
    assert.equal((await invite(there, 'from-there@example.com')).status, 429, 'on another node too')

    now += 24 * 60 * 60 * 1000 + 1
    await signIn(ann.browser, ann.email)
    assert.equal((await invite(ann.browser, 'tomorrow@example.com')).status, 201)
  })

  test(`${engine}: a workspace can send 100 invitations in 24 hours, and 3 to one address`, async (t) => {
    const { server, ann } = await serveWithOwner(t, { engine })
    const bob = await addMember(server, 'Bob', 'admin')
    const eve = await addMember(server, 'Eve', 'owner')
    const responses = await readStatuses(
      Array.from({ length: 12 }, () => invite(ann.browser, 'victim@example.com')),
    )
    assert.deepEqual([responses[201]?.length, responses[429]?.length], [3, 9])
    const again = await invite(bob.browser, 'Victim@Example.com')
    assert.equal(again.status, 429)
    assert.match(again.json.message, /This workspace has sent victim@example\.com 3 invitations in 24 hours/)

    for (const [who, count] of [
      [ann, 47],
      [bob, 50],
    ] as const)
      for (let index = 0; index < count; index++)
        assert.equal((await invite(who.browser, `${who.name}${index}@example.com`)).status, 201)
    const full = await invite(eve.browser, 'late@example.com')
    assert.equal(full.status, 429)
    assert.match(full.json.message, /This workspace has sent 100 invitations in 24 hours/)
    const { invitations } = (await ann.get('/workspaces/acme/members')).json
    assert.equal(invitations.length, 98, 'a new invitation replaces the previous one')
  })

  test(`${engine}: an address gets 20 invitations in 24 hours, fewer from one workspace`, async (t) => {
    const { server, ann } = await serveWithOwner(t, { engine })
    for (let index = 0; index < 12; index++) await invite(ann.browser, 'victim@example.com')
    const statuses: number[] = []
    for (const slug of ['beta', 'gamma', 'delta', 'epsilon', 'zeta', 'theta']) {
      await addWorkspace(server, slug)
      const owner = await addMember(server, `Owner-of-${slug}`, 'owner', slug)
      for (let index = 0; index < 3; index++) {
        const { status, json } = await invite(owner.browser, 'victim@example.com', slug)
        statuses.push(status)
        if (status === 429)
          assert.match(json.message, /victim@example\.com has been sent too many invitations in 24 hours/)
      }
      assert.equal((await invite(owner.browser, 'other@example.com', slug)).status, 201)
    }
    assert.deepEqual(statuses, [...Array(17).fill(201), 429])
  })
}
