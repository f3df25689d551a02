// Consistency checks over all operations of the contract.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Compile } from 'typebox/compile'
import { type Api, apis } from '../../src/contract/apis.ts'
import { faults } from '../../src/contract/faults.ts'
import type { Access, Operation } from '../../src/contract/operation.ts'

interface Bounds {
  type: string | string[]
  enum?: string[]
  maxLength?: number
  maximum?: number
  maxItems?: number
  pattern?: string
  items?: Bounds
  properties?: Record<string, Bounds>
}

/** A pattern limits the length of a text if it has no unlimited repetition. */
function isBounded(bounds: Bounds): boolean {
  const { type, enum: values, maxLength, maximum, maxItems, pattern, items, properties } = bounds
  switch (Array.isArray(type) ? type.find((each) => each !== 'null') : type) {
    case 'boolean':
      return true
    case 'integer':
      return maximum !== undefined
    case 'array':
      return maxItems !== undefined && isBounded(items as Bounds)
    case 'object':
      return Object.values(properties ?? {}).every(isBounded)
    default:
      return (
        values !== undefined ||
        maxLength !== undefined ||
        (pattern !== undefined && !/[*+]/.test(pattern.replaceAll(/\\./g, '')))
      )
  }
}

/** By the part of the id before the dot. */
const groupAccess: Record<string, Access> = {
  'sign-in': 'browser',
  links: 'browser',
  settings: 'owner',
  webhooks: 'owner',
}

/** Operations of the dashboard whose access differs from what their group, method and path imply. */
const exceptions: Record<string, Access> = {
  'members.leave': 'member',
  'notices.list': 'admin',
  // Members act on personal keys of their own.
  'keys.create': 'member',
  'keys.revoke': 'member',
  'keys.rotate': 'member',
  'devices.approve': 'member',
  'agents.approve': 'member',
  'key-requests.create': 'member',
  'key-requests.withdraw': 'member',
  'key-requests.pick-up': 'member',
}

/** In a workspace members read and admins write; outside of it, users act on their own account. */
function dashboardAccess({ id, method, path }: Operation): Access {
  const byRule = !path.startsWith('/workspaces/{workspace}') ? 'user' : method === 'GET' ? 'member' : 'admin'
  return exceptions[id] ?? groupAccess[id.split('.')[0] as string] ?? byRule
}

/** The access of the operations of each API. A new API, or an operation that deviates, is added here. */
const expectedAccess: Record<keyof typeof apis, (operation: Operation) => Access> = {
  publicA: () => 'key',
  publicB: () => 'key',
  workspace: () => 'key',
  edge: () => 'edge',
  device: () => 'device',
  oauth: () => 'device',
  dashboard: dashboardAccess,
  health: () => 'anyone',
}

for (const [name, { operations, document }] of Object.entries<Api>(apis)) {
  test(`${name}: every operation has the expected access`, () => {
    const expected = expectedAccess[name as keyof typeof apis]
    for (const operation of operations)
      assert.equal(
        operation.access,
        operation.id === 'description.read' ? 'anyone' : expected(operation),
        operation.id,
      )
  })

  test(`${name}: the OpenAPI document describes every group of operations, and no other`, () => {
    const groups = new Set(operations.map(({ id }) => id.split('.')[0]))
    if (document) assert.deepEqual(Object.keys(document.groups).toSorted(), [...groups].toSorted())
  })

  test(`${name}: ids and routes are unique, and so are the input names of an operation`, () => {
    const ids = operations.map((operation) => operation.id)
    const routes = operations.map((operation) => `${operation.method} ${operation.path}`)
    assert.equal(new Set(ids).size, ids.length)
    assert.equal(new Set(routes).size, routes.length)
    for (const { params, query, headers, body } of operations) {
      const names = [params, query, headers, body].flatMap((part) => Object.keys(part?.properties ?? {}))
      assert.equal(new Set(names).size, names.length)
    }
  })

  test(`${name}: path parameters match the declared ones`, () => {
    for (const { path, params } of operations) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      assert.deepEqual(Object.keys(params?.properties ?? {}), inPath)
    }
  })

  test(`${name}: every input has a maximum size`, () => {
    for (const operation of operations)
      for (const part of [operation.params, operation.query, operation.headers, operation.body])
        for (const [name, schema] of Object.entries(part?.properties ?? {})) {
          assert.ok(isBounded(schema as Bounds), `${operation.id} ${name}`)
        }
  })

  // The API of the dashboard is private, so it needs no descriptions or examples.
  if (name === 'dashboard') continue
  test(`${name}: operations are described, and response examples match their schemas`, () => {
    for (const { id, description, response } of operations) {
      assert.ok(description && response.description, `${id}: describe it for the users of the API`)
      if (response.stream) continue
      for (const { schema, example } of [response, ...(response.rejection ? [response.rejection] : [])]) {
        const compiled = Compile(schema)
        assert.ok(compiled.Check(example), `${id}: ${JSON.stringify(compiled.Errors(example))}`)
      }
    }
  })
}

test('error examples match their schemas, and every error has its own status', () => {
  for (const [code, { schema, example }] of Object.entries(faults)) {
    assert.ok(Compile(schema).Check(example), code)
    assert.equal(example.error, code)
  }
  const statuses = Object.values(faults).map(({ status }) => status)
  assert.equal(new Set(statuses).size, statuses.length)
})

interface Patterned {
  pattern?: string
  items?: Patterned
  properties?: Record<string, Patterned>
}

const patternsIn = ({ pattern, items, properties = {} }: Patterned): string[] => [
  ...(pattern === undefined ? [] : [pattern]),
  ...[...(items ? [items] : []), ...Object.values(properties)].flatMap(patternsIn),
]

test('no pattern is vulnerable to catastrophic backtracking', () => {
  const parts = Object.values<Api>(apis)
    .flatMap(({ operations }) => operations)
    .flatMap(({ params, query, headers, body }) => [params, query, headers, body])
  const patterns = new Set(parts.flatMap((part) => (part ? patternsIn(part as Patterned) : [])))
  assert.ok(patterns.size > 8)
  const repeated = ['a', '-', 'a-', '.', 'a.', 'a@', 'a@a.', ' ', '1', '\n', 'é', '+', '_']
  for (const pattern of patterns)
    for (const part of repeated)
      for (const text of [part.repeat(100_000), `${part.repeat(100_000)}!`, `a@${part.repeat(100_000)}!`]) {
        const began = performance.now()
        new RegExp(pattern, 'u').test(text)
        assert.ok(performance.now() - began < 1_000, `${pattern} on ${text.slice(0, 9)}…`)
      }
})
