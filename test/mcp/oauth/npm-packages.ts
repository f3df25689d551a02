// Programs of test/mcp/clients that sign in at a server of a test, where a user approves them in a real
// browser.
import { join } from 'node:path'
import { button, openPageAs } from '../../pages/support/harness.ts'
import { serveWithOwner } from '../../support/accounts/users.ts'
import type { Test } from '../../support/cleanup.ts'
import { readRows } from '../../support/databases/rows.ts'
import { installPackages } from '../../support/processes/npm-packages.ts'
import { root } from '../../support/processes/process.ts'
import { until } from '../../support/until.ts'

export const packages = join(installPackages(join(root, 'test/mcp/clients'), 'mcp-clients'), 'node_modules')

/** Nothing of the user who runs the tests. */
export const environment = (home: string) => ({
  PATH: process.env.PATH ?? '',
  HOME: home,
  MCP_REMOTE_CONFIG_DIR: home,
})

export async function setUp(t: Test) {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  const page = new RegExp(`${server.url}/authorize\\?[\\w%.~+=&-]+`)
  /** Approves what a program asks for by a URL in its output. */
  const approve = async (output: () => string) => {
    await until('the program prints the URL', () => page.test(output())).catch((error) => {
      throw new Error(`${error.message}\n${output()}`)
    })
    const { page: opened } = await openPageAs(t, server.url, ann)
    await opened.goto(page.exec(output())?.[0] as string)
    await button(opened, 'Approve').click()
  }
  const readKeys = () => readRows(server.services, 'api_keys', { agent_access: 'read' })
  return { server, url: `${server.url}/mcp`, approve, readKeys }
}
