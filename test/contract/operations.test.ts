// Consistency checks over all operations of the contract.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Compile } from 'typebox/compile'
import { dashboardOperations } from '../../src/contract/dashboard/index.ts'
import { deviceOperations } from '../../src/contract/device.ts'
import { edgeOperations } from '../../src/contract/edge/operations.ts'
import { faults } from '../../src/contract/faults.ts'
import type { Operation } from '../../src/contract/operation.ts'
import { opsOperations } from '../../src/contract/ops.ts'
import { variants } from '../../src/contract/variants.ts'

const tables: Record<string, readonly Operation[]> = {
  A: variants.A,
  B: variants.B,
  edge: edgeOperations,
  device: deviceOperations,
  ops: opsOperations,
  dashboard: dashboardOperations,
}

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

/** The expected access of every operation. New operations must be added here. */
const forUsers: Record<string, Operation['access']> = {
  'sign-in.options': 'browser',
  'sign-in.password': 'browser',
  'sign-in.code': 'browser',
  'sign-in.sso': 'browser',
  'sign-in.return': 'browser',
  'sign-in.request-reset': 'browser',
  'links.read': 'browser',
  'links.redeem': 'browser',
  'session.read': 'user',
  'session.end': 'user',
  'session.end-all': 'user',
  'account.rename': 'user',
  'account.password': 'user',
  'account.sessions': 'user',
  'account.end-session': 'user',
  'two-factor.begin': 'user',
  'two-factor.confirm': 'user',
  'two-factor.disable': 'user',
  'workspace.read': 'member',
  'workspaces.create': 'user',
  'settings.rename': 'owner',
  'settings.policy': 'owner',
  'settings.archive': 'owner',
  'keys.list': 'member',
  'keys.create': 'admin',
  'keys.revoke': 'admin',
  'keys.rotate': 'admin',
  'notices.list': 'admin',
  'quotas.read': 'member',
  'devices.read': 'user',
  'devices.approve': 'admin',
  'devices.deny': 'user',
  'usage.read': 'member',
  'audit.list': 'member',
  'audit.export': 'admin',
  'tunnels.list': 'member',
  'tunnels.close': 'admin',
  'edges.list': 'member',
  'names.list': 'member',
  'names.reserve': 'admin',
  'names.release': 'admin',
  'webhooks.list': 'owner',
  'webhooks.create': 'owner',
  'webhooks.update': 'owner',
  'webhooks.delete': 'owner',
  'webhooks.rotate': 'owner',
  'webhooks.test': 'owner',
  'webhooks.deliveries': 'owner',
  'webhooks.delivery': 'owner',
  'webhooks.resend': 'owner',
  'names.set-access': 'admin',
  'members.list': 'member',
  'members.set-role': 'admin',
  'members.remove': 'admin',
  'members.leave': 'member',
  'invitations.create': 'admin',
  'invitations.revoke': 'admin',
  'description.read': 'anyone',
}
const forPrograms: Record<string, Operation['access']> = {
  'workspace.read': 'key',
  'tokens.list': 'key',
  'tokens.create': 'key',
  'tokens.revoke': 'key',
  'usage.read': 'key',
  'keys.verify': 'edge',
  'keys.changes': 'edge',
  'requests.authorize': 'edge',
  'usage.report': 'edge',
  'hosts.find': 'edge',
  'tunnels.claim': 'edge',
  'tunnels.sync': 'edge',
  'device.authorize': 'device',
  'device.token': 'device',
  'description.read': 'anyone',
  'health.read': 'anyone',
  'readiness.read': 'anyone',
}

for (const [table, operations] of Object.entries(tables)) {
  test(`${table}: every operation has the expected access`, () => {
    const decided = table === 'dashboard' ? forUsers : forPrograms
    for (const operation of operations) assert.equal(operation.access, decided[operation.id], operation.id)
  })

  test(`${table}: ids and routes are unique, and so are the input names of an operation`, () => {
    const ids = operations.map((operation) => operation.id)
    const routes = operations.map((operation) => `${operation.method} ${operation.path}`)
    assert.equal(new Set(ids).size, ids.length)
    assert.equal(new Set(routes).size, routes.length)
    for (const { params, query, headers, body } of operations) {
      const names = [params, query, headers, body].flatMap((part) => Object.keys(part?.properties ?? {}))
      assert.equal(new Set(names).size, names.length)
    }
  })

  test(`${table}: path parameters match the declared ones`, () => {
    for (const { path, params } of operations) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      assert.deepEqual(Object.keys(params?.properties ?? {}), inPath)
    }
  })

  test(`${table}: every input has a maximum size`, () => {
    for (const operation of operations)
      for (const part of [operation.params, operation.query, operation.headers, operation.body])
        for (const [name, schema] of Object.entries(part?.properties ?? {})) {
          assert.ok(isBounded(schema as Bounds), `${operation.id} ${name}`)
        }
  })

  // The dashboard's API has no other users.
  if (operations === dashboardOperations) continue
  test(`${table}: operations are described, and response examples match their schemas`, () => {
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
  const parts = Object.values(tables)
    .flat()
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
