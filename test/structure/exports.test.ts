// What a file exports is for other files.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { root } from '../support/processes/process.ts'

const files = ['{src,test,bench,scripts}/**/*.ts', 'web/{*.ts,src/**/*.{ts,tsx}}', 'bin/*.js']
/** Entry points of other programs, one that writes declarations, and what the bundler inserts. */
const exempt = /^(src\/(cli-)?main|scripts\/node-20|test\/(support|citus)\/global|scripts\/declarations)\.ts$/
const DECLARATION = /^export (?:async |abstract )?(?:const|let|function\*?|class|interface|type) (\w+)/gm

test('every export is used by another file: what only its own file uses is not exported', () => {
  const texts = new Map(
    globSync(files, { cwd: root }).map((file) => [file, readFileSync(join(root, file), 'utf8')]),
  )
  const importers = new Map<string, string[]>()
  for (const [file, text] of texts)
    for (const [, target = ''] of text.matchAll(/'(\.[^'\n]*\.tsx?)'/g)) {
      const imported = join(dirname(file), target)
      importers.set(imported, [...(importers.get(imported) ?? []), text])
    }
  const isUsed = (file: string, name: string) =>
    importers.get(file)?.some((text) => new RegExp(`\\b${name}\\b`).test(text))
  const unused = [...texts].flatMap(([file, text]) =>
    [...text.matchAll(DECLARATION)]
      .filter(([, name = '']) => !exempt.test(file) && !isUsed(file, name))
      .map(([, name]) => `${file}: ${name}`),
  )
  assert.ok(texts.size > 1_000, 'found too few files')
  assert.deepEqual(unused, [], 'remove `export`')
})
