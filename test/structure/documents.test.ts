// Documents that list settings, commands, routes, errors, tests or files must match the code.
import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { commands } from '../../src/cli/commands.ts'
import { faults } from '../../src/contract/faults.ts'
import { variants } from '../../src/contract/variants.ts'
import { edgeSettings } from '../../src/server/config/edge.ts'
import { settings, version } from '../../src/server/config/server.ts'
import { root } from '../support/processes/process.ts'

const documents = globSync(['*.md', 'docs/**/*.md', 'src/**/*.md'], { cwd: root })
/** Made by the build, so absent in a fresh clone. */
const BUILT = /^(web\/)?dist\b/
const RULED_OUT = /\b(by heart|the other end|passOn|lender|tidings|whoever|no more)\b/i

/** The anchors that GitHub gives to the headings of a document. */
const listAnchors = (text: string): string[] =>
  [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  )

const read = (path: string) => readFileSync(join(root, path), 'utf8')

/** Fails with what to add to the document, and what to remove from it. */
function assertListed(document: string, listed: string[], expected: string[]): void {
  const add = expected.filter((line) => !listed.includes(line)).map((line) => `add to ${document}: ${line}`)
  const remove = listed.filter((line, index) => !expected.includes(line) || listed.indexOf(line) < index)
  assert.deepEqual([...add, ...remove.map((line) => `remove from ${document}: ${line}`)], [])
}

test('docs/configuration.md lists every setting with its default, and no other', () => {
  const [server = '', edge = ''] = read('docs/configuration.md').split('## An edge')
  const line = (name = '', fallback = '') => (fallback ? `${name} | ${fallback}` : name)
  const listed = (text: string) =>
    [...text.matchAll(/^\| `(ADIT_\w+)` \| (?:`([^`]*)` )?\|/gm)].map(([, name, fallback]) =>
      line(name, fallback),
    )
  const defined = (all: Record<string, { fallback: string }>) =>
    Object.entries(all).map(([name, { fallback }]) => line(name, fallback))
  assertListed('docs/configuration.md', listed(server), defined(settings))
  const credentials = ['ADIT_URL', 'ADIT_EDGE_KEY']
  assertListed('docs/configuration.md, "An edge"', listed(edge), [...defined(edgeSettings), ...credentials])
})

test('docs/cli.md lists every command, and no other', () => {
  const listed = [...read('docs/cli.md').matchAll(/^\| `adit ([^`]+)` \|/gm)].map(([, text = '']) =>
    text.replace(/ (<|--).*$/, ''),
  )
  assertListed(
    'docs/cli.md',
    listed,
    commands.map(({ name }) => name),
  )
})

test('the version is that of the package', () => {
  assert.equal(version, JSON.parse(read('package.json')).version)
})

test('package.json, bin/adit.js and the documents name the same lowest Node', () => {
  const [, lowest = ''] = /^>=([\d.]+)$/.exec(JSON.parse(read('package.json')).engines.node) ?? []
  const [major, minor] = lowest.split('.')
  const check = `major < ${major} || (major === ${major} && minor < ${minor})`
  assert.ok(read('bin/adit.js').includes(check), `bin/adit.js: check "${check}"`)
  const naming = documents.filter((file) => /Node \d+\.\d+ or later/.test(read(file)))
  assert.ok(naming.length >= 5)
  for (const file of ['bin/adit.js', ...naming])
    assert.ok(read(file).includes(`Node ${lowest} or later`), `${file}: write "Node ${lowest} or later"`)
})

test('the README lists every route of the public API', () => {
  const readme = read('README.md')
  for (const { method, path } of variants.A)
    assert.ok(readme.includes(`\`${method} ${path}`), `add to README.md: ${method} ${path}`)
})

test('docs/errors.md has a section for every error code, with its status', () => {
  const sections = [...read('docs/errors.md').matchAll(/^## (\w+)\n\n\*\*(\d{3})\.\*\*/gm)]
  assert.deepEqual(
    sections.map(([, code, status]) => [code, Number(status)]),
    Object.entries(faults).map(([code, { status }]) => [code, status]),
  )
})

test('every relative link and every path in the documents exists', () => {
  const missing = documents.flatMap((document) => {
    const text = read(document)
    const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, target = '']) => {
      if (/^(https?:|mailto:)/.test(target)) return []
      const [path = '', anchor] = target.split('#')
      const file = path === '' ? document : join(dirname(document), path)
      if (!existsSync(join(root, file))) return [target]
      return anchor === undefined || listAnchors(read(file)).includes(anchor) ? [] : [target]
    })
    const named = [...text.matchAll(/`((?:src|test|bench|scripts|web|deploy|docs|bin)\/[\w./-]+)`/g)]
    const paths = named.flatMap(([, path = '']) =>
      existsSync(join(root, path)) || BUILT.test(path) ? [] : [path],
    )
    return [...links, ...paths].map((target) => `${document}: ${target}`)
  })
  assert.deepEqual(missing, [])
})

test('documents and sources avoid words that CONTRIBUTING.md rules out', () => {
  const sources = globSync(['src/**/*.ts', 'web/src/**/*.{ts,tsx}', 'README.md', 'docs/**/*.md'], {
    cwd: root,
  })
  assert.ok(sources.length > 300)
  const found = sources.flatMap((source) =>
    read(source)
      .split('\n')
      .flatMap((line, index) => (RULED_OUT.test(line) ? [`${source}:${index + 1}`] : [])),
  )
  assert.deepEqual(found, [])
})

test('SECURITY.md names tests that exist', () => {
  const rows = [...read('SECURITY.md').matchAll(/\| `([\w/.-]+\.test\.ts)`: (.+) \|$/gm)]
  assert.ok(rows.length > 30)
  const missing = rows.flatMap(([, file = '', title = '']) => {
    if (!existsSync(join(root, 'test', file))) return [`${file} does not exist`]
    // A title is a string or a template that begins with the engine.
    const titles = [...read(`test/${file}`).matchAll(/\btest\(\s*(['`])(.+?)\1,/g)].map(([, , text]) => text)
    return titles.some((text) => text === title || text?.endsWith(`: ${title}`)) ? [] : [`${file}: ${title}`]
  })
  assert.deepEqual(missing, [])
})

test('the worked examples of CONTRIBUTING.md name what exists, except for what is bold', () => {
  const [, ...examples] = read('CONTRIBUTING.md').split(/^## Worked example/m)
  const steps = examples.flatMap((text) => (text.split(/^## /m)[0] ?? '').split(/^\d+\. /m).slice(1))
  assert.ok(steps.length > 12)
  const missing = steps.flatMap((step) => {
    const spans = [...step.replaceAll(/\*\*`[^`]+`\*\*/g, '').matchAll(/`([^`]+)`/g)].map(
      ([, span = '']) => span,
    )
    const paths = spans.filter((span) => existsSync(join(root, span)))
    const files = paths.flatMap((path) =>
      path.endsWith('/') ? globSync(`${path}**/*.ts`, { cwd: root }) : path,
    )
    const text = files.map(read).join('\n')
    return spans.filter((span) => /^[\w.]+$/.test(span) && !paths.includes(span) && !text.includes(span))
  })
  assert.deepEqual(missing, [])
})
