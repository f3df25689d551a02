// The registry of APIs is complete: what is not in it escapes the tests of all operations.
import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Api, apis } from '../../src/contract/apis.ts'
import type { Operation } from '../../src/contract/operation.ts'
import { root } from '../support/processes/process.ts'

const isOperation = (value: object): value is Operation => 'method' in value && 'path' in value

/** The operations in a value: itself, or in lists and tables of them. */
function operationsIn(value: unknown): Operation[] {
  if (typeof value !== 'object' || value === null) return []
  if (isOperation(value)) return [value]
  return Object.values(value).flatMap((part) => (part === value ? [] : operationsIn(part)))
}

const registered = new Set(Object.values<Api>(apis).flatMap(({ operations }) => operations))

/** The exports of a module whose operations are in no API, as an instruction. */
const unregistered = (file: string, exports: object): string[] =>
  Object.entries(exports).flatMap(([name, value]) =>
    operationsIn(value).some((operation) => !registered.has(operation))
      ? [`${file} exports ${name}: add its operations to an API in src/contract/apis.ts`]
      : [],
  )

test('every operation of the contract belongs to an API in the registry', async () => {
  const files = globSync('src/contract/**/*.ts', { cwd: root })
  const modules = await Promise.all(
    files.map(async (file) => [file, await import(join(root, file))] as const),
  )
  assert.deepEqual(
    modules.flatMap(([file, exports]) => unregistered(file, exports)),
    [],
  )
})

test('a list or a table with an operation that is in no API is found', () => {
  const [operation] = apis.edge.operations
  const added = { ...operation, id: 'things.list' }
  for (const value of [[added], { A: [operation, added] }, added])
    assert.match(unregistered('things.ts', { value })[0] ?? '', /^things\.ts exports value: add/)
})
