// Every operation and command that changes something declares its audit actions, or why it has none.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { commands } from '../../src/cli/commands.ts'
import { type Api, apis } from '../../src/contract/apis.ts'
import { auditActions } from '../../src/contract/audit-actions.ts'
import type { Audit } from '../../src/contract/operation.ts'

const operations = Object.values<Api>(apis).flatMap((api) => api.operations)

const lists = { none: 'it only reads' }

const byCommand: Record<string, Audit> = {
  'admin workspace create': ['workspace.created'],
  'admin workspace list': lists,
  'admin workspace provision': ['workspace.provisioned'],
  'admin workspace archive': ['workspace.archived'],
  'admin workspace restore': ['workspace.restored'],
  'admin workspace set-group': ['workspace.group-changed'],
  'admin workspace quota': ['workspace.quota-changed'],
  'admin key create': ['key.created'],
  'admin key list': lists,
  'admin key rotate': ['key.created', 'key.rotated'],
  'admin key find': lists,
  'admin key revoke': ['key.revoked'],
  'admin edge create': ['edge.created'],
  'admin edge-group create': ['edge-group.created'],
  'admin edge-group list': lists,
  'admin edge set-url': ['edge.url-changed'],
  'admin edge list': lists,
  'admin edge revoke': ['edge.revoked'],
  'admin tunnels': lists,
  'admin port list': lists,
  'admin port release': ['port.released'],
  'admin user invite': ['user.invited'],
  'admin user list': lists,
  'admin user reset': ['user.reset-link-created', 'user.two-factor-reset'],
  'admin user revoke': ['user.disabled'],
  'admin user restore': ['user.enabled'],
  'admin usage show': lists,
  'admin usage reset': ['usage.reset'],
  'admin audit export': ['audit.exported'],
  'admin migrate': ['database.migrated'],
  'admin backup': ['database.backed-up'],
  'admin backup verify': lists,
  'admin revoke-again': ['key.revoked', 'edge.revoked', 'user.disabled'],
  'admin retention': ['database.cleaned-up'],
  'admin distribute': ['database.distributed'],
  'admin nodes': lists,
  'admin doctor': lists,
  'admin demo': ['usage.demo-added'],
  serve: ['database.migrated', 'workspace.created', 'key.created', 'user.invited'],
}

test('every operation that changes something declares its audit actions, or why it has none', () => {
  const undeclared = operations.filter(({ method, audit }) => method !== 'GET' && audit === undefined)
  assert.deepEqual(undeclared, [], 'add `audit` to the operation')
})

test('every command of the operator declares its audit actions, or why it has none', () => {
  const names = commands.map(({ name }) => name).filter((name) => name.startsWith('admin '))
  assert.deepEqual(Object.keys(byCommand).toSorted(), [...names, 'serve'].toSorted())
})

test('every audit action belongs to an operation or a command, and is in the filter of a workspace’s log', () => {
  const declared = [...operations.map(({ audit = [] }) => audit), ...Object.values(byCommand)].flatMap(
    (audit) => ('none' in audit ? [] : audit),
  )
  assert.deepEqual([...new Set(declared)].toSorted(), Object.keys(auditActions).toSorted())
  const source = readFileSync(new URL('../../web/src/audit/actions.ts', import.meta.url), 'utf8')
  const [filtered = ''] = source.split('const others')
  const labeled = [...filtered.matchAll(/^ {2}'([\w.-]+)': \[/gm)].map(([, action]) => action)
  const ofWorkspaces = Object.entries(auditActions).flatMap(([action, { target }]) =>
    target === 'edge' || target === 'database' || action.endsWith('.denied') ? [] : action,
  )
  assert.deepEqual(labeled.toSorted(), ofWorkspaces.toSorted())
})
