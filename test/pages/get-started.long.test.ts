// The steps to the first tunnel on the overview page: their commands work, and they are ticked as they
// happen.
import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import { fillWithUsage } from '../../src/server/domain/setup/demo.ts'
import { addMember } from '../support/accounts/users.ts'
import { addEdge, addWorkspace, serve } from '../support/api/server.ts'
import { test } from '../support/browser.ts'
import { createFolder } from '../support/databases/create.ts'
import { run } from '../support/processes/process.ts'
import { checkEveryView, checkPage, DESKTOP, visit } from './support/harness.ts'

/** The checklist polls every five seconds. */
const TICK_TIMEOUT_MS = 15_000

const waitForTick = (page: Page, step: string) =>
  page.getByText(`${step} (done)`).waitFor({ timeout: TICK_TIMEOUT_MS })

test('the steps to the first tunnel show working commands and are ticked as they happen', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const { workspace } = await addWorkspace(server, 'fresh')
  await server.services.store.transaction((db) =>
    db.deleteFrom('api_keys').where('workspace_id', '=', workspace.id).execute(),
  )
  const ann = await addMember(server, 'Ann', 'owner', 'fresh')
  const page = await visit(t, server, ann, '/w/fresh')
  await page.getByText('0 of 4 steps done').waitFor()
  // Under localhost the URL has the port of the edge.
  await page.getByText('Example: http://my-app.fresh.localhost:8081', { exact: true }).waitFor()
  await page.getByText('If the edge does not listen on port 8081').waitFor()
  await page.getByRole('link', { name: 'Create key' }).waitFor()
  const commands = await page.locator('pre').allInnerTexts()
  assert.deepEqual(commands, [
    `export ADIT_EDGE_KEY=$(adit admin edge create edge-1 --url http://127.0.0.1:8081)\nADIT_URL=${server.url} adit edge`,
    `curl -fsSL ${server.url}/install.sh | sh && export PATH="$HOME/.local/bin:$PATH"`,
    `adit login ${server.url}`,
    'adit tunnel 3000',
  ])
  const first = await page.locator('pre').first().boundingBox()
  assert.ok(first && first.y + first.height <= DESKTOP.height, 'the first command is seen without scrolling')
  await checkEveryView(page, 'get-started')

  const { token } = (await ann.post('/workspaces/fresh/keys', { label: 'laptop' })).json
  await waitForTick(page, 'Create an API key')
  await page.getByRole('link', { name: 'Create key' }).waitFor({ state: 'detached' })
  await addEdge(server, 'fra-1')
  await waitForTick(page, 'Run an edge')
  await page.getByText('Edge fra-1 is registered').waitFor()

  const home = createFolder(t)
  const login = (commands[2] ?? '').split(' ').slice(1)
  const { code, stderr } = await run(t, login, { HOME: home, XDG_CONFIG_HOME: home }, token)
  assert.equal(code, 0, stderr)
  await waitForTick(page, 'Install the client and sign in')

  await fillWithUsage(server.services, workspace.id, 1, () => {})
  await waitForTick(page, 'Open a tunnel')
  await page.getByText('All done: your first tunnel has traffic.').waitFor()
  await page.getByRole('heading', { name: 'Last 30 days' }).waitFor()
  await checkPage(page, 'get-started-done', '1280-light')
  await page.reload()
  await page.getByRole('heading', { name: 'Open tunnels' }).waitFor()
  assert.equal(await page.getByText('Get started').count(), 0)
  assert.deepEqual(await page.locator('pre').allInnerTexts(), ['adit tunnel 3000'])
})

test('a workspace that is not provisioned names the command that provisions it', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  await addWorkspace(server, 'fresh')
  const mia = await addMember(server, 'Mia', 'member', 'fresh')
  const page = await visit(t, server, mia, '/w/fresh')
  await page.getByText('adit admin workspace provision fresh').waitFor()
  await page.getByText('To create another one, see').waitFor()
})
