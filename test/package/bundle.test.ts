// The bundle in dist: it runs instead of the sources only while it is newer than all of them.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Test } from '../support/cleanup.ts'
import { createFolder } from '../support/databases/create.ts'
import { root } from '../support/processes/process.ts'

const TWO_WEEKS_AGO = new Date(Date.now() - 14 * 86_400_000)

/** A program with one lazily loaded chunk. */
function createProgram(t: Test) {
  const folder = createFolder(t)
  for (const name of ['scripts', 'bin', 'package.json', 'package-lock.json', 'LICENSE', 'src/lib'])
    cpSync(join(root, name), join(folder, name), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  for (const name of ['client', 'edge-sdk', 'tunnel']) {
    mkdirSync(join(folder, 'src', name), { recursive: true })
    writeFileSync(join(folder, 'src', name, 'index.ts'), 'export const nothing = true\n')
  }
  writeFileSync(join(folder, 'src/cli-main.ts'), 'export const main = async () => 0\n')
  const main = "export const main = async () => console.log((await import('./later.ts')).output)\n"
  writeFileSync(join(folder, 'src/main.ts'), main)
  const setOutput = (text: string) =>
    writeFileSync(join(folder, 'src/later.ts'), `export const output = '${text}'\n`)
  const run = (file: string) => execFileSync(process.execPath, [join(folder, file)], { encoding: 'utf8' })
  const chunks = () => readdirSync(join(folder, 'dist')).filter((name) => name.startsWith('later'))
  return {
    folder,
    setOutput,
    chunks,
    bundle: () => run('scripts/bundle.ts'),
    output: () => run('bin/adit.js').trim(),
  }
}

test('a changed source runs, whatever its modification time', (t) => {
  const { folder, setOutput, bundle, output } = createProgram(t)
  setOutput('first')
  bundle()
  assert.equal(output(), 'first')
  for (const name of ['client/index.js', 'cli/main.js', 'adit-cli.tgz'])
    assert.ok(existsSync(join(folder, 'dist', name)), name)
  setOutput('second')
  utimesSync(join(folder, 'src/later.ts'), TWO_WEEKS_AGO, TWO_WEEKS_AGO)
  assert.equal(output(), 'second')
  bundle()
  assert.equal(output(), 'second')
})

test('chunks that an older server may still load are kept for a week after they were replaced', (t) => {
  const { folder, setOutput, chunks, bundle } = createProgram(t)
  setOutput('first')
  bundle()
  const [first = ''] = chunks()
  // Built long ago, and in use until now.
  for (const name of ['main.js', first]) utimesSync(join(folder, 'dist', name), TWO_WEEKS_AGO, TWO_WEEKS_AGO)
  setOutput('second')
  bundle()
  assert.equal(chunks().length, 2)
  setOutput('third')
  bundle()
  assert.equal(chunks().length, 3)
  utimesSync(join(folder, 'dist', first), TWO_WEEKS_AGO, TWO_WEEKS_AGO)
  setOutput('fourth')
  bundle()
  assert.ok(!chunks().includes(first) && chunks().length === 3, String(chunks()))
})
