// Alerts about quotas, edges that do not report, and keys that are used although they are revoked: in the
// dashboard, by email and as events, once each across nodes; test/process/failures/alert-kill.long.test.ts
// restarts them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hashSecret } from '../../../src/lib/credentials/secret.ts'
import { createKey, revoke } from '../../../src/server/domain/keys/lifecycle.ts'
import type { NoticeEmail } from '../../../src/server/domain/notices/mails.ts'
import { setQuotas } from '../../../src/server/domain/workspaces/quotas.ts'
import { addMember } from '../../support/accounts/users.ts'
import { addEdge, addNode, caller, operator, serve } from '../../support/api/server.ts'
import { counter, today } from '../../support/api/usage.ts'
import { engines } from '../../support/databases/create.ts'
import { addTunnelEdge, tunnelOf } from '../../support/edges/open-tunnels.ts'
import { alertEnv, alertNode, OPERATOR, silenceEdge } from '../../support/events/alerts.ts'
import { addEndpoint, deliveriesOf } from '../../support/events/webhooks.ts'
import { pluck } from '../../support/pluck.ts'
import { until } from '../../support/until.ts'

for (const engine of engines)
  test(`${engine}: alerts arrive once each, also with several nodes`, async (t) => {
    const server = await serve(t, { engine, env: alertEnv })
    const { ctx, services, workspace } = server
    const second = await addNode(t, server)
    const ann = await addMember(server, 'Ann', 'owner')
    await addMember(server, 'Cy', 'member')
    const endpoint = await addEndpoint(services, workspace.id)
    const events = async () =>
      pluck(await deliveriesOf(services, endpoint), 'type').filter((type) =>
        /^(quota|edge|key\.rejected)/.test(type),
      )
    const notices = async () => (await ann.get('/workspaces/acme/notices')).json.notices
    const emails: NoticeEmail[] = []
    const nodes = [alertNode(server, emails), alertNode(server, emails)] as const
    const runAll = async () => {
      await Promise.all(nodes.map(({ run }) => run()))
      // A node that was just started.
      await alertNode(server, emails).run()
    }
    const subjects = () => emails.splice(0).map(({ to, subject }) => `${to}: ${subject}`)

    await t.test('80 % and 100 % of a quota', async () => {
      await setQuotas(services, operator, 'acme', { bytes: 1_000 })
      const edge = await addEdge(server, 'usage')
      const report = (url: string, bytesIn: number) => {
        const json = { epoch: 'e-1', counters: [counter({ day: today(), bytesIn })] }
        return caller(`${url}/edge/v1`, edge.token)('POST', '/usage', { json })
      }
      for (const { url } of [server, second]) await report(url, 800)
      await until('80 %', async () => (await events()).length === 1)
      await runAll()
      assert.deepEqual(subjects(), [`${ann.email}: A workspace on Adit has used 80 % of a quota`])
      for (const { url } of [server, second]) await report(url, 1_000)
      await until('100 %', async () => (await events()).length === 2)
      await runAll()
      assert.match(
        emails[0]?.text ?? '',
        /^It has reached its quota of .* It renews on \d{4}-\d\d-01 at 00:00 UTC\. The operator can raise it\.$/m,
      )
      assert.deepEqual(subjects(), [`${ann.email}: A workspace on Adit has reached a quota`])
      assert.deepEqual(await events(), ['quota.near', 'quota.reached'])
      assert.partialDeepStrictEqual(await notices(), [
        { kind: 'quota', quota: { kind: 'bytes', percent: 100, limit: 1_000 } },
      ])
      await setQuotas(services, operator, 'acme', { bytes: 'none' })
      assert.deepEqual(await notices(), [])
      await setQuotas(services, operator, 'acme', { bytes: 1_000 })
      await runAll()
      assert.deepEqual(subjects(), [], 'once for this limit and month')
      await setQuotas(services, operator, 'acme', { bytes: 'none' })
    })

    const edge = await addTunnelEdge(server, 'fra-1')
    await t.test('quotas of keys and tunnels', async () => {
      await setQuotas(services, operator, 'acme', { keys: 2, tunnels: 1 })
      await createKey(ctx)
      const tunnel = tunnelOf(server)
      assert.equal((await edge.claim(tunnel)).granted, true)
      await edge.sync({ changed: [tunnel] })
      assert.equal((await edge.claim(tunnelOf(server, { name: 'other' }))).granted, false)
      assert.deepEqual((await events()).slice(2), ['quota.reached', 'quota.reached'])
      await setQuotas(services, operator, 'acme', { keys: 'default', tunnels: 'none' })
      await runAll()
      assert.equal(subjects().length, 2)
    })

    await t.test(
      'an edge that does not report: to the operator, and to those with tunnels there',
      async () => {
        const silence = (minutes: number) => silenceEdge(server, edge.id, minutes)
        await silence(4)
        await runAll()
        assert.deepEqual(subjects(), [])
        await silence(6)
        await runAll()
        assert.deepEqual(subjects().toSorted(), [
          `${ann.email}: A workspace on Adit has tunnels on an edge that is not reporting`,
          `${OPERATOR}: Adit edge fra-1 is not reporting`,
        ])
        assert.deepEqual([...nodes[0].silent, ...nodes[1].silent], ['fra-1'])
        assert.partialDeepStrictEqual(await notices(), [{ kind: 'edge-silent', edge: { name: 'fra-1' } }])
        assert.equal((await events()).at(-1), 'edge.silent')
        await edge.sync()
        assert.deepEqual(await notices(), [])
      },
    )

    await t.test('many uses of a revoked key', async () => {
      const key = await createKey(ctx, { label: 'leaked' })
      await revoke(ctx, key.id)
      for (let attempt = 0; attempt < 50; attempt++)
        for (const { rejections } of nodes) rejections.record(hashSecret(key.token))
      nodes[0].rejections.record('unknown')
      await runAll()
      await runAll()
      nodes[0].rejections.record(hashSecret(key.token))
      await runAll()
      assert.deepEqual(subjects(), [
        `${ann.email}: A workspace on Adit has high traffic from an inactive API key`,
      ])
      assert.partialDeepStrictEqual(await notices(), [{ kind: 'key-rejected', key: { id: key.id } }])
      assert.equal((await events()).at(-1), 'key.rejected')
    })
  })
