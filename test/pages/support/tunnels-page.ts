// The tunnels page of a test user, with sample tunnels.
import type { Page } from 'playwright-core'
import { addMember } from '../../support/accounts/users.ts'
import type { TestServer } from '../../support/api/server.ts'
import type { Test } from '../../support/cleanup.ts'
import { sampleTunnel } from '../../support/edges/connected-edge.ts'
import { CLIPBOARD, openPageAs } from './harness.ts'

export const rows = (page: Page) => page.getByRole('table', { name: 'Open tunnels' }).locator('tbody tr')

export const samples = (server: TestServer, count: number) =>
  Array.from({ length: count }, (_, index) => sampleTunnel(server, index))

interface TunnelsPageOptions {
  role?: 'owner' | 'member'
  search?: string
}

/** As Ann, an owner, or as Mia, a member. */
export async function openTunnelsPage(
  t: Test,
  server: TestServer,
  { role = 'owner', search = '' }: TunnelsPageOptions = {},
) {
  const user = await addMember(server, role === 'owner' ? 'Ann' : 'Mia', role)
  const { page, context } = await openPageAs(t, server.url, user, CLIPBOARD)
  await page.goto(`${server.url}/w/acme/tunnels${search}`)
  await page.getByRole('heading', { level: 1, name: 'Tunnels' }).waitFor()
  return { page, context }
}
