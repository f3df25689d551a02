// Where data is without settings.
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { dataFolder } from '../../src/server/config/data-folder.ts'
import { readEdgeConfig } from '../../src/server/config/edge.ts'
import type { Test } from '../support/cleanup.ts'
import { createFolder } from '../support/databases/create.ts'
import { serving, startProcess } from '../support/processes/process.ts'

const onLinux = { skip: process.platform !== 'linux' }
const fileMode = (path: string) => (statSync(path).mode & 0o777).toString(8)

/** `adit serve` in this directory, without ADIT_DATABASE_URL. */
const startIn = (t: Test, cwd: string, env: Record<string, string>) =>
  serving(startProcess(t, ['serve', '--json'], { ADIT_PORT: '0', ...env }, '', cwd))

test(
  'databases and secrets are not in the working directory, and admin commands find them',
  onLinux,
  async (t) => {
    const [home, clone] = [realpathSync(createFolder(t)), realpathSync(createFolder(t))]
    const folder = join(home, '.local/share/adit')
    const server = await startIn(t, clone, { HOME: home })
    await server.waitFor(new RegExp(`"path":"${folder}/adit\\.db".*"using SQLite database"`), 'stderr')
    assert.ok(!existsSync(join(clone, 'data')))
    assert.deepEqual([folder, join(folder, 'adit.db'), join(folder, 'adit.db.secret')].map(fileMode), [
      '700',
      '600',
      '600',
    ])
    const admin = ['admin', 'workspace', 'list', '--json']
    const { stdout, stderr } = await startProcess(t, admin, { HOME: home }, '', createFolder(t)).ended
    assert.equal(JSON.parse(stdout)[0].slug, 'default', stderr)
  },
)

test('./data of the working directory is used if it has a database', async (t) => {
  const [home, clone] = [realpathSync(createFolder(t)), realpathSync(createFolder(t))]
  const path = join(clone, 'data/adit.db')
  const created = { HOME: home, ADIT_DATABASE_URL: 'sqlite:./data/adit.db' }
  const migrated = await startProcess(t, ['admin', 'migrate'], created, '', clone).ended
  assert.equal(migrated.code, 0, migrated.stderr)
  const server = await startIn(t, clone, { HOME: home })
  await server.waitFor(new RegExp(`"path":"${path}".*"using SQLite database"`), 'stderr')
  assert.ok(existsSync(`${path}.secret`))
})

test('the data folder is that of the platform', onLinux, (t) => {
  assert.equal(dataFolder({ HOME: '/home/ann' }), '/home/ann/.local/share/adit')
  assert.equal(dataFolder({ HOME: '/home/ann', XDG_DATA_HOME: '/srv' }), '/srv/adit')
  assert.equal(dataFolder({ HOME: '/home/ann', XDG_DATA_HOME: 'relative' }), '/home/ann/.local/share/adit')
  const folder = createFolder(t)
  mkdirSync(join(folder, 'adit'))
  assert.equal(readEdgeConfig({ XDG_DATA_HOME: folder }).folder, join(folder, 'adit/edge'))
  assert.equal(readEdgeConfig({ ADIT_EDGE_FOLDER: '/spool' }).folder, '/spool')
})
