// The commands of docs/operations/citus.md for backup and restore, on a real cluster.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { populate, startClients } from '../support/api/clients.ts'
import { coordinatorUrl, emptyDatabase } from '../support/databases/citus.ts'
import { query } from '../support/databases/client.ts'
import { createFolder } from '../support/databases/create.ts'
import { migrate } from '../support/databases/migrate.ts'
import { root, run, startServing } from '../support/processes/process.ts'

/** The shell commands of a section. */
function findCommands(heading: string): string {
  const text = readFileSync(join(root, 'docs/operations/citus.md'), 'utf8')
  const [, section = ''] = text.split(`\n## ${heading}\n`)
  const [body = ''] = section.split('\n## ')
  return [...body.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, commands]) => commands).join('')
}

const sh = promisify(execFile)

test('a backup taken while nodes serve is restored with exact usage', async (t) => {
  const database = coordinatorUrl()
  const env = { ADIT_DATABASE_URL: database, ADIT_LOG_LEVEL: 'silent' }
  const cwd = createFolder(t)
  const shell = (commands: string) =>
    sh('sh', ['-ec', commands], { cwd, env: { ...process.env, ADIT_DATABASE_URL: database } })
  await emptyDatabase(database)
  await migrate(database)
  assert.equal((await run(t, ['admin', 'distribute'], env)).code, 0)
  const secrets = await populate(database)
  const node = await startServing(t, env)
  const clients = startClients([node.url], secrets)
  await clients.areRunning()
  const before = clients.ledger.bytes.reduce((sum, each) => sum + each, 0)
  await shell(findCommands('Backups'))
  await clients.finish()
  const after = clients.ledger.bytes.reduce((sum, each) => sum + each, 0)
  await node.stop()

  await emptyDatabase(database)
  await shell(findCommands('Restoring'))
  assert.equal((await run(t, ['admin', 'distribute'], env)).code, 0)
  const sums = 'select sum(bytes_in)::float8 as bytes from'
  const [days] = await query(database, `${sums} usage_days`)
  const [counters] = await query(database, `${sums} usage_counters`)
  assert.equal(days.bytes, counters.bytes, 'days and counters are of one moment')
  assert.ok(days.bytes >= before && days.bytes <= after, `${before} ≤ ${days.bytes} ≤ ${after}`)
  t.diagnostic(`${clients.responses} responses, ${clients.unavailable.length} of them 503, during the backup`)

  // Edges that go on from their totals make up for what the backup does not have.
  const restored = await startServing(t, env)
  const again = startClients([restored.url], secrets)
  await again.areRunning()
  await again.finish()
  assert.equal((await fetch(`${restored.url}/readyz`)).status, 200)
  await emptyDatabase(database)
})

test('a backup that fails ends with an error and keeps the earlier one', async (t) => {
  const database = coordinatorUrl()
  await emptyDatabase(database)
  const cwd = createFolder(t)
  const dump = join(cwd, 'adit.dump')
  writeFileSync(dump, 'earlier')
  writeFileSync(join(cwd, 'pg_dump'), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
  const { PATH } = process.env
  const backUp = (path: string) =>
    sh('sh', ['-ec', findCommands('Backups')], {
      cwd,
      env: { ...process.env, ADIT_DATABASE_URL: database, PATH: path },
    })
  await assert.rejects(backUp(`${PATH}`), /relation "usage_counters" does not exist/)
  await migrate(database)
  await assert.rejects(backUp(`${cwd}:${PATH}`), /adit\.new/)
  assert.equal(readFileSync(dump, 'utf8'), 'earlier')
  await backUp(`${PATH}`)
  assert.notEqual(readFileSync(dump, 'utf8'), 'earlier')
  await emptyDatabase(database)
})
