// The programs of docs/secret-scanning.md find complete keys, and only those.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createSecret, isSecret } from '../../../src/lib/credentials/secret.ts'
import { root } from '../../support/processes/process.ts'

const document = readFileSync(join(root, 'docs/secret-scanning.md'), 'utf8')
const readBlock = (language: string) =>
  new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(document)?.[1] ?? assert.fail(language)

const keys = [createSecret('key', randomBytes), createSecret('edge', randomBytes)]
const wrong = (keys[0] as string).replace(/.$/, (last) => (last === 'x' ? 'y' : 'x'))
const text = `KEY=${keys[0]}\n"${keys[1]}", ${wrong} and ${keys[0]}0\n`

test('the sample key has a correct checksum', () => {
  const [sample = ''] = /^adit_\S+$/m.exec(document) ?? []
  assert.ok(isSecret('key', sample))
})

for (const [language, command, flags] of [
  ['python', 'python3', ['-c']],
  ['js', process.execPath, ['--input-type=module', '-e']],
] as const)
  test(`the ${language} program prints the complete keys in a text`, (t) => {
    const { error, stdout } = spawnSync(command, [...flags, readBlock(language)], {
      input: text,
      encoding: 'utf8',
    })
    if (error) return t.skip(`no ${command}`)
    assert.deepEqual(stdout.trim().split('\n'), keys)
  })
