// docs/adit.schema.json, which editors read, is the schema of the contract.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { projectFileSchema } from '../../src/contract/project-file.ts'
import { root } from '../support/processes/process.ts'

test('docs/adit.schema.json is the schema of adit.json', () => {
  const published = JSON.parse(readFileSync(join(root, 'docs/adit.schema.json'), 'utf8'))
  assert.deepEqual(published, JSON.parse(projectFileSchema))
})
