// The program in a few files: it runs in place of the sources only while it was made from just them.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Test } from '../support/cleanup.ts'
import { createFolder } from '../support/databases.ts'
import { root } from '../support/process.ts'

const TWO_WEEKS_AGO = new Date(Date.now() - 14 * 86_400_000)

/** A program with a part that it loads when it is first needed. */
function createProgram(t: Test) {
  const folder = createFolder(t)
  for (const name of ['scripts', 'bin', 'package.json', 'package-lock.json'])
    cpSync(join(root, name), join(folder, name), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  for (const name of ['client', 'edge-sdk']) {
    mkdirSync(join(folder, 'src', name), { recursive: true })
    writeFileSync(join(folder, 'src', name, 'index.ts'), 'export const nothing = true\n')
  }
  const main = "export const main = async () => console.log((await import('./later.ts')).said)\n"
  writeFileSync(join(folder, 'src/main.ts'), main)
  const say = (text: string) => writeFileSync(join(folder, 'src/later.ts'), `export const said = '${text}'\n`)
  const run = (file: string) => execFileSync(process.execPath, [join(folder, file)], { encoding: 'utf8' })
  const parts = () => readdirSync(join(folder, 'dist')).filter((name) => name.startsWith('later'))
  return { folder, say, parts, bundle: () => run('scripts/bundle.ts'), hear: () => run('bin/adit.js').trim() }
}

test('a source that was changed runs, whatever date it was given', (t) => {
  const { folder, say, bundle, hear } = createProgram(t)
  say('first')
  bundle()
  assert.equal(hear(), 'first')
  assert.ok(existsSync(join(folder, 'dist/client/index.js')))
  say('second')
  utimesSync(join(folder, 'src/later.ts'), TWO_WEEKS_AGO, TWO_WEEKS_AGO)
  assert.equal(hear(), 'second')
  bundle()
  assert.equal(hear(), 'second')
})

test('parts that an older server may still load stay for a week from when they were replaced', (t) => {
  const { folder, say, parts, bundle } = createProgram(t)
  say('first')
  bundle()
  const [first = ''] = parts()
  // Made long ago, and in use until now.
  for (const name of ['main.js', first]) utimesSync(join(folder, 'dist', name), TWO_WEEKS_AGO, TWO_WEEKS_AGO)
  say('second')
  bundle()
  assert.equal(parts().length, 2)
  say('third')
  bundle()
  assert.equal(parts().length, 3)
  utimesSync(join(folder, 'dist', first), TWO_WEEKS_AGO, TWO_WEEKS_AGO)
  say('fourth')
  bundle()
  assert.ok(!parts().includes(first) && parts().length === 3, String(parts()))
})
