// kill -9 of a node that sends alerts. Each alert is created once, and its email is sent again only if the
// mail server has not acknowledged it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DAY_MS } from '../../../src/lib/time.ts'
import { createKey, revoke } from '../../../src/server/domain/keys/lifecycle.ts'
import { createEdge } from '../../../src/server/domain/tunnels/edges.ts'
import { createWorkspace } from '../../../src/server/domain/workspaces/manage.ts'
import { setQuotas } from '../../../src/server/domain/workspaces/quotas.ts'
import { type ReceivedEmail, startMailServer } from '../../support/accounts/mail-server.ts'
import { caller, openTestServices, operator, recordVerified } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { startReceiver } from '../../support/events/webhook-receiver.ts'
import { addEndpoint, makeDue } from '../../support/events/webhooks.ts'
import { startServing } from '../../support/processes/process.ts'
import { until } from '../../support/until.ts'

const shortPolls = `--import=${new URL('../../support/processes/short-polls.ts', import.meta.url)}`
/** Enough for an alert, also if the hour changes meanwhile. */
const REJECTIONS = 220

const readHeader = ({ text }: ReceivedEmail, name: string) =>
  new RegExp(`^${name}: (.*(?:\\r\\n[ \\t].*)*)`, 'im').exec(text)?.[1]?.replaceAll(/\s+/g, ' ') ?? ''

for (const engine of engines)
  test(`${engine}: alerts arrive once each across kill -9 of the node that sends them`, async (t) => {
    const mail = await startMailServer(t)
    const receiver = await startReceiver(t)
    const { services, database } = await openTestServices(t, engine, mail.env)
    const { store } = services
    const { id: workspaceId } = await createWorkspace(services, operator, { slug: 'acme', provisioned: true })
    const ctx = { ...services, actor: operator, workspaceId }
    await addEndpoint(services, workspaceId, { url: receiver.url, created_at: 0 })
    const leaked = await createKey(ctx, { label: 'leaked' })
    const expiresAt = new Date(Date.now() + 6 * DAY_MS).toISOString()
    const [expiring, expired] = [await createKey(ctx, { expiresAt }), await createKey(ctx, { expiresAt })]
    await revoke(ctx, leaked.id)
    await store.transaction(async (tx) => {
      const at = { created_at: 0, updated_at: 0 }
      const user = { id: 'usr_ann', name: 'Ann', email: 'ann@example.com', email_verified: 1, ...at }
      await tx.insertInto('users').values(user).execute()
      const member = { workspace_id: workspaceId, user_id: user.id, role: 'owner', created_at: 0 } as const
      await tx.insertInto('members').values(member).execute()
      const keys = tx.updateTable('api_keys')
      // Only a key that lives for weeks gets a notice before it expires.
      await keys.set({ created_at: 0 }).where('id', '=', expiring.id).execute()
      await keys
        .set({ expires_at: Date.now() - 1 })
        .where('id', '=', expired.id)
        .execute()
    })
    const edge = await createEdge(services, operator, 'fra-1')
    await recordVerified({ services })
    await setQuotas(services, operator, 'acme', { bytes: 1_000 })

    const env = {
      ...mail.env,
      ADIT_DATABASE_URL: database,
      ADIT_WEBHOOK_PRIVATE_NETWORKS: '127.0.0.0/8',
      ADIT_LOG_LEVEL: 'silent',
      NODE_OPTIONS: shortPolls,
    }
    /** Starts a node, and causes every alert. */
    const start = async () => {
      const node = await startServing(t, env)
      const report = caller(`${node.url}/edge/v1`, edge.token)
      const counters = [
        { workspace: 'acme', day: today(), requests: 9, bytesIn: 1_000, bytesOut: 0, events: 0 },
      ]
      assert.equal((await report('POST', '/usage', { json: { epoch: 'e-1', counters } })).status, 200)
      const call = caller(node.api, leaked.token)
      const uses = await Promise.all(Array.from({ length: REJECTIONS }, () => call('GET', '/workspace')))
      for (const { status } of uses) assert.equal(status, 401)
      return node
    }
    const kill = async ({ child, ended }: Awaited<ReturnType<typeof start>>) => {
      child.kill('SIGKILL')
      await ended
      // As if the time until the next attempts, and until leases and claims expire, had passed.
      await store.transaction(async (tx) => {
        await tx.updateTable('notice_mails').set({ due_at: 0 }).where('due_at', 'is not', null).execute()
        await tx.updateTable('maintenance').set({ due_at: 0 }).execute()
      })
      await makeDue(services, { withClaims: true })
    }
    const subjects = () => {
      const byId = new Map(mail.emails.map((email) => [readHeader(email, 'Message-ID'), email]))
      return [...byId.values()].map((email) => `${email.to}: ${readHeader(email, 'Subject')}`).toSorted()
    }
    const events = () =>
      receiver
        .unique()
        .map(({ body }) => body.type as string)
        .filter((type) => /^(quota|key\.(rejected|expir))/.test(type))
        .toSorted()

    // Killed while the mail server has an email that it has not acknowledged.
    const [sent, killed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    mail.beforeAcknowledge = () => {
      sent.resolve()
      return killed.promise
    }
    const first = await start()
    await sent.promise
    await kill(first)
    killed.resolve()
    mail.beforeAcknowledge = async () => {}

    // Killed after everything was sent.
    const second = await start()
    await until('all emails arrive', () => subjects().length >= 3)
    await until('all events arrive', () => events().length >= 4)
    await until('no email is due', async () => (await dueMails()).length === 0)
    await kill(second)

    const rejections = () => store.db.selectFrom('key_rejections').selectAll().executeTakeFirst()
    const before = await rejections()
    await start()
    await until('the node has counted the rejections again', async () => {
      const after = await rejections()
      return after?.attempts !== before?.attempts || after?.hour !== before?.hour
    })
    await until('the job has run', async () => {
      const { due_at } = await store.db.selectFrom('maintenance').select('due_at').executeTakeFirstOrThrow()
      return due_at > Date.now()
    })
    // Another alert, which is the last one to arrive.
    await setQuotas(services, operator, 'acme', { requests: 1 })
    await until('the last email arrives', () => subjects().length >= 4)
    await until('the last event arrives', () => events().length >= 5)

    const prefix = 'ann@example.com: A workspace on Adit'
    assert.deepEqual(subjects(), [
      `${prefix} has high traffic from an inactive API key`,
      `${prefix} has reached a quota`,
      `${prefix} has reached a quota`,
      'ann@example.com: API keys of a workspace on Adit expire soon',
    ])
    assert.deepEqual(events(), [
      'key.expired',
      'key.expiring',
      'key.rejected',
      'quota.reached',
      'quota.reached',
    ])
    // Only the one that was not acknowledged was sent twice.
    assert.equal(mail.emails.length, 5)

    async function dueMails() {
      return store.db.selectFrom('notice_mails').select('user_id').where('due_at', 'is not', null).execute()
    }
  })

const today = () => new Date().toISOString().slice(0, 10)
