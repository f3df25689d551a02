// Notices before API keys expire: in the dashboard and by email, once each across nodes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DAY_MS, HOUR_MS } from '../../../src/lib/time.ts'
import type { Services } from '../../../src/server/domain/context.ts'
import { createKey, revoke } from '../../../src/server/domain/keys/lifecycle.ts'
import { rotate } from '../../../src/server/domain/keys/rotation.ts'
import { runNotices } from '../../../src/server/domain/maintenance/job.ts'
import {
  type NoticeEmail,
  type NoticeMailOptions,
  sendNoticeMails,
} from '../../../src/server/domain/notices/mails.ts'
import { createMail } from '../../../src/server/mail.ts'
import { startMailServer } from '../../support/accounts/mail-server.ts'
import { addMember } from '../../support/accounts/users.ts'
import { serve, type TestServer } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { createRun } from '../../support/databases/maintenance-run.ts'
import { setRows } from '../../support/databases/rows.ts'
import { addEndpoint, deliveriesOf } from '../../support/events/webhooks.ts'
import { pluck } from '../../support/pluck.ts'
import { commitWhenBlocked } from '../../support/until.ts'

const publicUrl = () => 'https://adit.example.com'

async function notify(services: Services, mail: NoticeMailOptions): Promise<void> {
  await runNotices(createRun(services), { withMail: true })
  await sendNoticeMails(createRun(services), mail)
}

/** One node whose emails arrive in the list. */
const node = (services: Services, emails: NoticeEmail[]) => () =>
  notify(services, {
    publicUrl,
    onFailure: (error) => assert.fail(String(error)),
    send: async (email) => {
      emails.push(email)
    },
  })

/** Adds a key that was created 100 days ago. */
async function addOldKey({ ctx, services }: TestServer, label: string, expiresInMs: number) {
  const expiresAt = new Date(Date.now() + expiresInMs).toISOString()
  const key = await createKey(ctx, { label, expiresAt })
  await setRows(services, 'api_keys', { created_at: Date.now() - 100 * DAY_MS }, { id: key.id })
  return key
}

/** As if the time until the next attempt had passed. */
const makeDue = ({ services }: TestServer) =>
  services.store.transaction((db) =>
    db.updateTable('notice_mails').set({ due_at: 0 }).where('due_at', 'is not', null).execute(),
  )

for (const engine of engines)
  test(`${engine}: owners and admins are told once that keys expire, in the dashboard and by email`, async (t) => {
    const server = await serve(t, { engine })
    const { ctx, services } = server
    const ann = await addMember(server, 'Ann', 'owner')
    const bob = await addMember(server, 'Bob', 'admin')
    const cy = await addMember(server, 'Cy', 'member')
    const labels = async () =>
      (await ann.get('/workspaces/acme/notices')).json.notices.map(
        ({ key }: { key: { label: string } }) => key.label,
      )
    const week = await addOldKey(server, 'see evil.example week', 6 * DAY_MS)
    await addOldKey(server, 'day', 20 * HOUR_MS)
    await addOldKey(server, 'later', 8 * DAY_MS)
    const soon = new Date(Date.now() + 3 * DAY_MS).toISOString()
    await createKey(ctx, { label: 'created for 3 days', expiresAt: soon })
    const revoked = await addOldKey(server, 'revoked', DAY_MS)
    await revoke(ctx, revoked.id)
    const rotated = await addOldKey(server, 'rotated', 5 * DAY_MS)
    await rotate(ctx, rotated.id, '7d')
    assert.deepEqual(await labels(), [])

    const emails: NoticeEmail[] = []
    const nodes = [node(services, emails), node(services, emails)]
    await Promise.all(nodes.map((run) => run()))
    for (const run of nodes) await run()
    const keysIn = ({ text }: NoticeEmail) =>
      [...text.matchAll(/^- (.*), adit_…/gm)].map(([, label]) => label)
    assert.deepEqual(emails.map((email) => `${email.to} ${keysIn(email)}`).toSorted(), [
      `${ann.email} day`,
      `${ann.email} see evil example week`,
      `${bob.email} day`,
      `${bob.email} see evil example week`,
    ])
    assert.match(emails[0]?.text ?? '', /^https:\/\/adit\.example\.com\/w\/acme\/keys$/m)
    assert.equal(new Set(emails.map(({ id }) => id)).size, 4)

    assert.deepEqual(await labels(), ['day', 'see evil.example week'])
    assert.equal((await cy.get('/workspaces/acme/notices')).status, 403)
    await rotate(ctx, week.id, '1h')
    assert.deepEqual(await labels(), ['day'], 'it has a successor')

    await t.test('without mail, notices are in the dashboard', async () => {
      await addOldKey(server, 'unmailed', 2 * DAY_MS)
      await runNotices(createRun(services), { withMail: false })
      assert.deepEqual(await labels(), ['day', 'unmailed'])
      emails.length = 0
      await nodes[0]?.()
      assert.deepEqual(emails, [])
    })

    await t.test('an email that may not have been sent is sent again, with the same ID', async () => {
      await addOldKey(server, 'retried', 3 * DAY_MS)
      const attempts: NoticeEmail[] = []
      const failures: unknown[] = []
      const send = async (email: NoticeEmail) => {
        attempts.push(email)
        throw new Error('connection reset')
      }
      const fail = () => notify(services, { publicUrl, send, onFailure: (error) => failures.push(error) })
      await fail()
      await fail()
      assert.equal(attempts.length, 2, 'not again at once')
      await makeDue(server)
      await nodes[0]?.()
      await makeDue(server)
      await nodes[0]?.()
      assert.deepEqual(emails.map(({ id }) => id).toSorted(), attempts.map(({ id }) => id).toSorted())
      assert.equal(failures.length, 2)
    })

    await t.test('a workspace is sent at most ten emails about notices a day', async () => {
      emails.length = 0
      for (let count = 0; count < 10; count++) {
        await addOldKey(server, `many ${count}`, 4 * DAY_MS)
        await nodes[0]?.()
      }
      // Three before: two thresholds at first, and the one that was retried.
      assert.equal(emails.filter(({ to }) => to === ann.email).length, 7)
      assert.equal((await labels()).length, 13)
    })
  })

test('recipients that the mail server rejects do not delay emails to others', async (t) => {
  const mailServer = await startMailServer(t, (address) => address.startsWith('zoe'))
  const server = await serve(t, { engine: 'sqlite' })
  for (const name of ['Al', 'Bo', 'Cy', 'Di']) await addMember(server, name, 'admin')
  const zoe = await addMember(server, 'Zoe', 'owner')
  await addOldKey(server, 'old', DAY_MS)
  const failures: unknown[] = []
  await notify(server.services, {
    publicUrl,
    onFailure: (error) => failures.push(error),
    send: createMail({ url: mailServer.env.ADIT_SMTP_URL, from: 'adit@example.com' }),
  })
  assert.deepEqual(pluck(mailServer.emails, 'to'), [zoe.email])
  assert.equal(failures.length, 4)
})

test('an email has a Message-ID that stays the same', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const { emails, env } = await startMailServer(t)
  await addMember(server, 'Ann', 'owner')
  await addOldKey(server, 'ci', DAY_MS / 2)
  const send = createMail({ url: env.ADIT_SMTP_URL, from: env.ADIT_MAIL_FROM })
  const onFailure = (error: unknown) => assert.fail(String(error))
  await notify(server.services, { publicUrl, send, onFailure })
  assert.equal(emails.length, 1)
  assert.match(emails[0]?.text ?? '', /^Message-ID:\s+<dig_\w+\.usr_\w+@example\.com>/im)
})

test('a key whose notice another node has created meanwhile gets no second event', async (t) => {
  const server = await serve(t, { engine: 'postgres' })
  const { services, workspace } = server
  const endpoint = await addEndpoint(services, workspace.id, { events: ',key.expiring,' })
  const first = await addOldKey(server, 'first', 5 * DAY_MS)
  await addOldKey(server, 'second', 6 * DAY_MS)
  const notice = { kind: 'key-expiry', subject_id: first.id, dedup_key: '7d', workspace_id: workspace.id }
  await commitWhenBlocked(
    services.store,
    (tx) =>
      tx
        .insertInto('notices')
        .values({ ...notice, created_at: Date.now(), digest_id: null })
        .execute(),
    node(services, []),
  )
  const labels = (await deliveriesOf(services, endpoint)).map(({ body }) => body.data.key.label)
  assert.deepEqual(labels, ['second'])
})
