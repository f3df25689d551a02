// Documents that list settings, commands, routes, errors, tests or files must match the code.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { commands } from '../../src/cli/commands.ts'
import { edgeSettings, settings, version } from '../../src/config.ts'
import { faults } from '../../src/contract/faults.ts'
import { variants } from '../../src/contract/variants.ts'
import { root } from '../support/process.ts'

const read = (path: string) => readFileSync(join(root, path), 'utf8')

test('docs/configuration.md lists every setting with its default, and no other', () => {
  const [server = '', edge = ''] = read('docs/configuration.md').split('## An edge')
  const listed = (text: string) =>
    [...text.matchAll(/^\| `(ADIT_\w+)` \| (?:`([^`]*)` )?\|/gm)].map(([, name, fallback = '']) => [
      name,
      fallback,
    ])
  const defined = (all: Record<string, { fallback: string }>) =>
    Object.entries(all).map(([name, { fallback }]) => [name, fallback])
  assert.deepEqual(listed(server).sort(), defined(settings).sort())
  const credentials = [
    ['ADIT_URL', ''],
    ['ADIT_EDGE_KEY', ''],
  ]
  assert.deepEqual(listed(edge).sort(), [...defined(edgeSettings), ...credentials].sort())
})

test('docs/cli.md lists every command, and no other', () => {
  const listed = [...read('docs/cli.md').matchAll(/^\| `adit ([^`]+)` \|/gm)].map(([, text = '']) =>
    text.replace(/ (<|--).*$/, ''),
  )
  assert.deepEqual(listed.sort(), commands.map(({ name }) => name).sort())
})

test('the version is that of the package', () => {
  assert.equal(version, JSON.parse(read('package.json')).version)
})

test('the README names every route and error', () => {
  const readme = read('README.md')
  for (const { method, path } of variants.A) assert.ok(readme.includes(`\`${method} ${path}`), path)
  for (const [code, { status }] of Object.entries(faults))
    assert.match(readme, new RegExp(`${code}\` \\(${status}`))
})

test('SECURITY.md names tests that exist', () => {
  const rows = read('SECURITY.md').matchAll(/\| `([\w/.-]+\.test\.ts)`: (.+) \|$/gm)
  const named = [...rows].map(([, file = '', title = '']) => ({ file, title }))
  assert.ok(named.length > 30)
  for (const { file, title } of named) {
    // A title is a string or a template that begins with the engine.
    const titles = [...read(`test/${file}`).matchAll(/\btest\(\s*(['`])(.+?)\1,/g)].map(
      ([, , text = '']) => text,
    )
    assert.ok(
      titles.some((text) => text === title || text.endsWith(`: ${title}`)),
      `${file}: ${title}`,
    )
  }
})
