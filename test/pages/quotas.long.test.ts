// Quotas and notices on the overview.
import assert from 'node:assert/strict'
import { createKey } from '../../src/server/domain/keys/lifecycle.ts'
import { setQuotas } from '../../src/server/domain/workspaces/quotas.ts'
import { addMember } from '../support/accounts/users.ts'
import { operator, serveWithEdge } from '../support/api/server.ts'
import { test } from '../support/browser.ts'
import { checkEveryView, visit } from './support/harness.ts'

test('the overview shows what is left of each quota, and what needs attention', async (t) => {
  const { server, edge } = await serveWithEdge(t, { engine: 'sqlite' })
  const now = Date.now()
  const day = new Date(now).toISOString().slice(0, 10)
  const counter = { workspace: 'acme', day, requests: 850, bytesIn: 3_000, bytesOut: 2 ** 30, events: 0 }
  await edge.report({ epoch: 'e-1', counters: [counter] })
  await setQuotas(server.services, operator, 'acme', {
    bytes: 2 ** 30,
    requests: 1_000,
    tunnels: 20,
    keys: 10,
  })
  const ctx = { ...server.services, actor: operator, workspaceId: server.workspace.id }
  await createKey(ctx, { label: 'second' })
  const ann = await addMember(server, 'Ann', 'owner')
  const page = await visit(t, server, ann, '/w/acme')

  const quotas = page.getByRole('region', { name: 'Quotas' })
  await quotas.getByText('1 GiB of 1 GiB · none left').waitFor()
  await quotas.getByText('850 of 1,000 · 150 left').waitFor()
  await quotas.getByText('0 of 20 · 20 left').waitFor()
  await quotas.getByText('2 of 10 · 8 left').waitFor()
  assert.equal(await quotas.getByRole('progressbar', { name: 'Requests this month: 85% used' }).count(), 1)
  await page.getByText('Traffic quota reached').waitFor()
  await page.getByText('Request quota 80% used').waitFor()
  await page.getByText('edges reject requests and new tunnels.').waitFor()
  assert.equal(await page.getByText('Ready', { exact: true }).count(), 0)
  await checkEveryView(page, 'quotas')
  await setQuotas(server.services, operator, 'acme', { bytes: 'none' })
  await page.reload()
  await page.getByText('Ready', { exact: true }).waitFor()
})
