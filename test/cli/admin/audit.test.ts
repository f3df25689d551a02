// Audit entries of the operator's commands, and `adit admin audit export`.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { hostname, userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { engines } from '../../support/databases/create.ts'
import { createOperator } from '../../support/processes/commands.ts'

interface Entry {
  cursor: string
  action: string
  actor: object
  address: string
  target: { kind: string }
  workspace: { slug: string } | null
}

const parse = (lines: string): Entry[] =>
  lines
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

for (const engine of engines)
  test(`${engine}: commands of the operator are in the audit log, with user and host`, async (t) => {
    const { adit } = await createOperator(t, engine)
    await adit('workspace', 'create', 'acme', '--provisioned')
    const key = await adit('key', 'create', '--workspace', 'acme', '--json')
    await adit('key', 'revoke', JSON.parse(key.stdout).id, '--yes')
    await adit('edge', 'create', 'fra-1')
    await adit('demo', '--workspace', 'acme')
    // On PostgreSQL it waits a minute for reports in progress.
    if (engine === 'sqlite') await adit('retention')
    const { code, stdout, stderr } = await adit('audit', 'export')
    assert.equal(code, 0)
    const entries = parse(stdout)
    assert.deepEqual(
      entries.map(({ action, target, workspace }) => [action, target.kind, workspace?.slug]),
      [
        ['workspace.created', 'workspace', 'acme'],
        ['key.created', 'key', 'acme'],
        ['key.revoked', 'key', 'acme'],
        ['edge.created', 'edge', undefined],
        ['usage.demo-added', 'usage', 'acme'],
        ...(engine === 'sqlite' ? [['database.cleaned-up', 'database', undefined]] : []),
        ['audit.exported', 'audit', undefined],
      ],
    )
    for (const { actor, address } of entries)
      assert.deepEqual(
        [actor, address],
        [{ kind: 'operator', id: userInfo().username, name: null }, hostname()],
      )
    const last = entries.at(-1)?.cursor as string
    assert.match(
      stderr,
      new RegExp(`^Exported ${entries.length} entries. Continue with --since ${last}.$`, 'm'),
    )
    const nothing = await adit('audit', 'export', '--since', last, '--json')
    assert.deepEqual([nothing.code, nothing.stdout, nothing.stderr], [0, '', ''])
    for (const since of ['yesterday', '2026-11-16', '3', '0', '99999999999999999']) {
      const wrong = await adit('audit', 'export', '--since', since, '--json')
      assert.deepEqual([wrong.code, JSON.parse(wrong.stderr).error], [2, 'usage'], since)
    }
  })

test('an export continues after the last entry of its output, or at the cursor of a file', async (t) => {
  const { env, adit } = await createOperator(t)
  const folder = dirname(env.ADIT_DATABASE_URL.slice('sqlite:'.length))
  const [output, cursor] = [join(folder, 'audit.ndjson'), join(folder, 'cursor')]
  const actions = (text: string) => parse(text).map(({ action }) => action)
  await adit('edge', 'create', 'fra-1')
  await adit('audit', 'export', '--output', output, '--cursor-file', cursor)
  assert.deepEqual(actions(readFileSync(output, 'utf8')), ['edge.created', 'audit.exported'])
  await adit('backup', join(folder, 'backup.db'))
  await adit('audit', 'export', '--output', output, '--cursor-file', cursor)
  const exported = ['edge.created', 'audit.exported', 'database.backed-up', 'audit.exported']
  assert.deepEqual(actions(readFileSync(output, 'utf8')), exported)
  // Rotated.
  writeFileSync(output, '')
  await adit('edge', 'create', 'fra-2')
  await adit('audit', 'export', '--output', output, '--cursor-file', cursor)
  assert.deepEqual(actions(readFileSync(output, 'utf8')), ['edge.created', 'audit.exported'])
  writeFileSync(output, 'another file\n')
  const wrong = await adit('audit', 'export', '--output', output)
  assert.deepEqual([wrong.code, readFileSync(output, 'utf8')], [1, 'another file\n'])
  assert.match(wrong.stderr, /does not end with an exported entry/)
})
