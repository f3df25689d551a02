// `adit admin backup verify`.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { createFolder } from '../../support/databases/create.ts'
import { assertFailed, createOperator } from '../../support/processes/commands.ts'

test('a backup is verified: damage, wrong totals and other files are rejected with the reason', async (t) => {
  const { env, adit } = await createOperator(t)
  await adit('workspace', 'create', 'acme')
  const key = (await adit('key', 'create', '--workspace', 'acme')).stderr.match(/tok_\w+/)?.[0] as string
  await adit('edge', 'create', 'fra-1')
  await adit('demo', '--workspace', 'acme')
  const folder = createFolder(t)
  const backup = join(folder, 'backup.db')
  assert.equal((await adit('backup', backup)).code, 0)

  const good = await adit('backup', 'verify', backup)
  assert.match(
    good.stdout,
    /backup\.db is good: 1 workspaces, 0 users, 1 API keys, 1 edges, 365 days of usage; schema version 1\.\n$/,
  )
  const json = JSON.parse((await adit('backup', 'verify', backup, '--json')).stdout)
  const rows = { workspaces: 1, users: 0, keys: 1, edges: 1, usageDays: 365 }
  assert.deepEqual(json, { file: backup, bytes: statSync(backup).size, schema: 1, ...rows })

  const rejected = async (file: string, reason: RegExp) => {
    assertFailed(await adit('backup', 'verify', file), 1, reason)
  }
  const changed = (name: string, statements: string) => {
    const file = join(folder, name)
    copyFileSync(backup, file)
    const database = new DatabaseSync(file, { enableForeignKeyConstraints: false })
    database.exec(statements)
    database.close()
    return file
  }
  await rejected(
    changed(
      'totals.db',
      'update usage_days set requests = requests + 1 where day = (select max(day) from usage_days)',
    ),
    /The usage of workspace ws_\w+ on \d{4}-\d\d-\d\d is not the sum .* Do not restore this file\./,
  )
  await rejected(changed('day.db', 'delete from usage_days'), /is not the sum of what edges have reported/)
  await rejected(
    changed('orphan.db', 'delete from workspaces'),
    /damaged: a row of \w+ refers to a missing row of workspaces\. .*make a new one\./,
  )
  await rejected(
    changed('newer.db', 'update schema_version set version = 999, min_compatible_version = 999'),
    /schema version 999; this adit supports versions up to \d+\. Run the newer adit/,
  )
  await rejected(
    changed('table.db', 'drop table sessions'),
    /The file has no table sessions\. Do not restore/,
  )
  await rejected(
    changed('index.db', 'drop index identities_by_user'),
    /The file has no index identities_by_user\./,
  )
  await rejected(
    changed('head.db', 'delete from change_log_head'),
    /The table change_log_head has lost its row\./,
  )
  await rejected(changed('version.db', 'delete from schema_version'), /it has no schema version\./)
  const copies = changed('wal.db', 'pragma journal_mode = wal')
  await rejected(copies, /is a copy of a database/)
  assert.deepEqual([existsSync(`${copies}-wal`), existsSync(`${copies}-shm`)], [false, false])
  assert.equal((await adit('key', 'revoke', key, '--yes')).code, 0)
  const copy = join(folder, 'copy.db')
  copyFileSync(env.ADIT_DATABASE_URL.slice('sqlite:'.length), copy)
  await rejected(copy, /is a copy of a database, not a backup of `adit admin backup`/)
  const bytes = readFileSync(backup)
  const cut = join(folder, 'cut.db')
  writeFileSync(cut, bytes.subarray(0, bytes.length / 2))
  await rejected(cut, /damaged/)
  const notes = join(folder, 'notes.txt')
  writeFileSync(notes, 'not a database')
  await rejected(notes, /Not an Adit database: file is not a database\./)
  await rejected(join(folder, 'none.db'), /none\.db does not exist\./)
  await rejected(folder, /cannot be read: it is a directory; specify a file\./)
  const pipe = join(folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  await rejected(pipe, /pipe cannot be read: it is not a regular file\./)
})
