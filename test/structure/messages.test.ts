// What the program tells people to run.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { root } from '../support/process.ts'

test('no source names npx: outside a clone it would run another package that is called adit', () => {
  const sources = globSync(['src/**/*.ts', 'bin/*.js', 'scripts/*.{ts,js}', 'web/src/**/*.{ts,tsx}'], {
    cwd: root,
  })
  assert.ok(sources.length > 100)
  const naming = sources.filter((source) => /\bnpx\b/.test(readFileSync(join(root, source), 'utf8')))
  assert.deepEqual(naming, [])
})

test('the documents never run adit by npx in a way that could fetch another package', () => {
  const documents = globSync(['README.md', 'CONTRIBUTING.md', 'docs/**/*.md'], { cwd: root })
  const unsafe = documents.flatMap((document) =>
    readFileSync(join(root, document), 'utf8')
      .split('\n')
      .flatMap((line, index) => (/\bnpx adit\b/.test(line) ? [`${document}:${index + 1}`] : [])),
  )
  assert.deepEqual(unsafe, [])
})
