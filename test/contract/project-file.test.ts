// docs/adit.schema.json, which editors read, is the schema of the contract.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ProjectFile } from '../../src/contract/project-file.ts'
import { root } from '../support/processes/process.ts'

test('docs/adit.schema.json is the schema of adit.json', () => {
  const published = JSON.parse(readFileSync(join(root, 'docs/adit.schema.json'), 'utf8'))
  const schema = JSON.parse(
    JSON.stringify(ProjectFile, (name, value) => (name === 'x-rule' ? undefined : value)),
  )
  const { $schema, title, ...rest } = published
  assert.deepEqual(rest, schema)
  assert.deepEqual([$schema, title], ['https://json-schema.org/draft/2020-12/schema', 'adit.json'])
})
