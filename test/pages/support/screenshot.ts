// Makes the screenshot in the README, docs/images/dashboard.png. Run after a change of the dashboard:
//   npm run build
//   npx node --test --test-global-setup=test/support/global.ts test/pages/support/screenshot.ts
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fillWithUsage } from '../../../src/server/domain/setup/demo.ts'
import { serveWithOwner } from '../../support/accounts/users.ts'
import { openBrowser, test } from '../../support/browser.ts'
import { sampleTunnel, simulateEdge, tcpSettings } from '../../support/edges/connected-edge.ts'
import { root } from '../../support/processes/process.ts'
import { signInAs } from './harness.ts'

test('the screenshot of the README', async (t) => {
  const browser = await openBrowser(t)
  const env = { ADIT_TUNNEL_DOMAIN: 'tunnels.example.com', ...tcpSettings }
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite', env })
  const tunnels = []
  for (const [index, label] of ['staging', 'ci', 'laptop'].entries()) {
    const { id } = (await ann.post('/workspaces/acme/keys', { label })).json
    tunnels.push({ ...sampleTunnel(server, index + 1), keyId: id })
  }
  await simulateEdge(t, server, 'fra-1', tunnels)
  await fillWithUsage(server.services, server.workspace.id, 365, () => {})
  const context = await browser.newContext({ viewport: { width: 1200, height: 1240 }, colorScheme: 'light' })
  await signInAs(context, server.url, ann)
  const page = await context.newPage()
  await page.goto(`${server.url}/w/acme`)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.waitForLoadState('networkidle')
  // Charts are animated when they appear.
  await page.waitForTimeout(1_500)
  mkdirSync(join(root, 'docs/images'), { recursive: true })
  await page.screenshot({ path: join(root, 'docs/images/dashboard.png') })
})
