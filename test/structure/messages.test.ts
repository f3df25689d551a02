// Commands in messages and documents must not run another package that is called adit.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { root } from '../support/processes/process.ts'

test('messages of the program run adit by npx only with --no-install, which downloads nothing', () => {
  const sources = globSync(['src/**/*.ts', 'bin/*.js', 'scripts/*.{ts,js}', 'web/src/**/*.{ts,tsx}'], {
    cwd: root,
  })
  assert.ok(sources.length > 100)
  const unsafe = sources.filter((source) =>
    /\bnpx\b(?! --no-install adit\b)/.test(readFileSync(join(root, source), 'utf8')),
  )
  assert.deepEqual(unsafe, [])
})

test('the documents run adit by npx only with --no-install', () => {
  const documents = globSync(['README.md', 'CONTRIBUTING.md', 'docs/**/*.md'], { cwd: root })
  const unsafe = documents.flatMap((document) =>
    readFileSync(join(root, document), 'utf8')
      .split('\n')
      .flatMap((line, index) => (/\bnpx adit\b/.test(line) ? [`${document}:${index + 1}`] : [])),
  )
  assert.deepEqual(unsafe, [])
})
