// Runs the statements of docs/operations/postgres.md.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { atEnd, type Test } from '../../../support/cleanup.ts'
import { query } from '../../../support/databases/client.ts'
import { root } from '../../../support/processes/process.ts'

export const document = readFileSync(join(root, 'docs/operations/postgres.md'), 'utf8')
const [creation = [], ownSchema = [], grants = [], timeouts = []] = [
  ...document.matchAll(/```sql\n([\s\S]*?)```/g),
].map(([, block = '']) => block.split(';\n').filter(Boolean))

export { grants, ownSchema, timeouts }

/** Runs documented statements for another role. */
export async function runAs(role: string, url: string, statements: string[]): Promise<void> {
  assert.ok(statements.length >= 2)
  const database = new URL(url).pathname.slice(1)
  for (const statement of statements)
    await query(
      url,
      statement.replace('database shared', `database ${database}`).replaceAll(/\badit\b/g, role),
    )
}

export const urlAs = (role: string, url: string) =>
  Object.assign(new URL(url), { username: role, password: 'change-me' }).href

/** A role and its database. Returns its name and the URL of the database for the role. */
export async function createRole(t: Test) {
  const server = process.env.TEST_POSTGRES_URL as string
  const role = `adit_test_${randomBytes(6).toString('hex')}`
  atEnd(t, async () => {
    await query(server, `drop database if exists ${role} with (force)`)
    await query(server, `drop role ${role}`)
  })
  await runAs(role, server, creation)
  return { role, url: urlAs(role, Object.assign(new URL(server), { pathname: `/${role}` }).href) }
}
