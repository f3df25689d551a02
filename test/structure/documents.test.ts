// Documents that list what the code also lists must list the same.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { commands } from '../../src/cli/commands.ts'
import { settings, version } from '../../src/config.ts'
import { faults } from '../../src/contract/faults.ts'
import { variants } from '../../src/contract/variants.ts'
import { root } from '../support/process.ts'

const readme = readFileSync(join(root, 'README.md'), 'utf8')

test('the README lists every setting with its default, and no other', () => {
  const listed = [...readme.matchAll(/^\| `(ADIT_\w+)` \| (?:`([^`]*)`)?/gm)].map(
    ([, name, fallback = '']) => [name, fallback],
  )
  assert.deepEqual(
    listed.sort(),
    Object.entries(settings)
      .map(([name, { fallback }]) => [name, fallback])
      .sort(),
  )
})

test('the version is that of the package', () => {
  assert.equal(version, JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version)
})

test('the README names every command, route and error', () => {
  for (const { name } of commands)
    assert.ok(readme.includes(name.replace('admin edge revoke', 'edge revoke')), name)
  for (const { method, path } of variants.A) assert.ok(readme.includes(`\`${method} ${path}`), path)
  for (const [code, { status }] of Object.entries(faults))
    assert.match(readme, new RegExp(`${code}\` \\(${status}`))
})

test('SECURITY.md names tests that exist', () => {
  const rows = readFileSync(join(root, 'SECURITY.md'), 'utf8').matchAll(
    /\| `([\w/.-]+\.test\.ts)`: (.+) \|$/gm,
  )
  const named = [...rows].map(([, file = '', title = '']) => ({ file, title }))
  assert.ok(named.length > 30)
  for (const { file, title } of named) {
    const source = readFileSync(join(root, 'test', file), 'utf8')
    // A title is a string or a template that begins with the engine.
    const titles = [...source.matchAll(/\btest\(\s*(['`])(.+?)\1,/g)].map(([, , text = '']) => text)
    assert.ok(
      titles.some((text) => text === title || text.endsWith(`: ${title}`)),
      `${file}: ${title}`,
    )
  }
})
