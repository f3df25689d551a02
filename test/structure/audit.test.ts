// Every operation and command that changes something declares its audit actions, or why it has none.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { commands } from '../../src/cli/commands.ts'
import { dashboardOperations } from '../../src/contract/dashboard/index.ts'
import { deviceOperations } from '../../src/contract/device.ts'
import { edgeOperations } from '../../src/contract/edge/operations.ts'
import type { Operation } from '../../src/contract/operation.ts'
import { variants } from '../../src/contract/variants.ts'
import { type AuditAction, auditActions } from '../../src/server/domain/audit/actions.ts'

type Declared = readonly AuditAction[] | { none: string }

const tables: Record<string, readonly Operation[]> = {
  public: variants.A,
  edge: edgeOperations,
  device: deviceOperations,
  dashboard: dashboardOperations,
}

const signIn = ['user.signed-in', 'user.sign-in-failed'] as const
const reads = { none: 'it only reads; the body keeps a secret out of the URL' }
const ofEdges = { none: 'edges report facts many times a second; only the operator and members act' }

const byOperation: Record<string, Declared> = {
  'public tokens.create': ['key.created'],
  'public tokens.revoke': ['key.revoked'],
  'edge keys.verify': ofEdges,
  'edge tunnels.claim': ofEdges,
  'edge tunnels.sync': ofEdges,
  'edge usage.report': ofEdges,
  'edge hosts.find': ofEdges,
  'device device.authorize': { none: 'a request that nobody has approved yet, and that belongs to nobody' },
  'device device.token': ['key.created', 'device.failed'],
  'dashboard sign-in.password': signIn,
  'dashboard sign-in.code': signIn,
  'dashboard sign-in.sso': { none: 'it redirects to the identity provider; the return is recorded' },
  'dashboard sign-in.return': [...signIn, 'user.identity-linked', 'user.joined'],
  'dashboard sign-in.request-reset': ['user.reset-link-created'],
  'dashboard links.read': reads,
  'dashboard links.redeem': ['user.joined', 'user.password-reset', 'user.signed-in'],
  'dashboard session.end': ['user.signed-out'],
  'dashboard session.end-all': ['user.signed-out-everywhere'],
  'dashboard account.rename': ['user.renamed'],
  'dashboard account.password': ['user.password-changed', 'user.confirmation-failed'],
  'dashboard account.end-session': ['user.session-ended'],
  'dashboard two-factor.begin': ['user.two-factor-started', 'user.confirmation-failed'],
  'dashboard two-factor.confirm': ['user.two-factor-enabled', 'user.confirmation-failed'],
  'dashboard two-factor.disable': ['user.two-factor-disabled', 'user.confirmation-failed'],
  'dashboard keys.create': ['key.created'],
  'dashboard keys.revoke': ['key.revoked'],
  'dashboard keys.rotate': ['key.created', 'key.rotated'],
  'dashboard workspaces.create': ['workspace.created'],
  'dashboard settings.rename': ['workspace.renamed'],
  'dashboard settings.policy': ['workspace.policy-changed'],
  'dashboard settings.archive': ['workspace.archived'],
  'dashboard devices.read': reads,
  'dashboard devices.approve': ['device.approved'],
  'dashboard devices.deny': ['device.denied'],
  'dashboard audit.export': ['audit.exported'],
  'dashboard tunnels.close': ['tunnel.closed'],
  'dashboard webhooks.create': ['webhook.created'],
  'dashboard webhooks.update': ['webhook.changed', 'webhook.enabled', 'webhook.disabled'],
  'dashboard webhooks.delete': ['webhook.deleted'],
  'dashboard webhooks.rotate': ['webhook.secret-rotated'],
  'dashboard webhooks.test': ['webhook.tested'],
  'dashboard webhooks.resend': ['webhook.resent'],
  'dashboard names.reserve': ['name.reserved'],
  'dashboard names.release': ['name.released'],
  'dashboard names.set-access': ['name.rules-changed'],
  'dashboard invitations.create': ['user.invited', 'invitation.revoked'],
  'dashboard invitations.revoke': ['invitation.revoked'],
  'dashboard members.set-role': ['user.made-member', 'user.made-admin', 'user.made-owner'],
  'dashboard members.remove': ['user.removed'],
  'dashboard members.leave': ['user.left'],
}

const lists = { none: 'it only reads' }

const byCommand: Record<string, Declared> = {
  'admin workspace create': ['workspace.created'],
  'admin workspace list': lists,
  'admin workspace provision': ['workspace.provisioned'],
  'admin workspace archive': ['workspace.archived'],
  'admin workspace restore': ['workspace.restored'],
  'admin workspace quota': ['workspace.quota-changed'],
  'admin key create': ['key.created'],
  'admin key list': lists,
  'admin key rotate': ['key.created', 'key.rotated'],
  'admin key find': lists,
  'admin key revoke': ['key.revoked'],
  'admin edge create': ['edge.created'],
  'admin edge list': lists,
  'admin edge revoke': ['edge.revoked'],
  'admin tunnels': lists,
  'admin port list': lists,
  'admin port release': ['port.released'],
  'admin user create': ['user.invited'],
  'admin user list': lists,
  'admin user reset': ['user.reset-link-created', 'user.two-factor-reset'],
  'admin user revoke': ['user.disabled'],
  'admin user restore': ['user.enabled'],
  'admin usage show': lists,
  'admin usage reset': ['usage.reset'],
  'admin audit export': ['audit.exported'],
  'admin migrate': ['database.migrated'],
  'admin backup': ['database.backed-up'],
  'admin retention': ['database.cleaned-up'],
  'admin distribute': ['database.distributed'],
  'admin nodes': lists,
  'admin doctor': lists,
  'admin demo': ['usage.demo-added'],
  serve: ['database.migrated', 'workspace.created', 'key.created', 'user.invited'],
}

/** GET requests that change something: the identity provider redirects the browser. */
const CHANGING_READS = ['dashboard sign-in.return']

test('every operation that changes something declares its audit actions, or why it has none', () => {
  const changing = Object.entries(tables).flatMap(([table, operations]) =>
    operations.filter(({ method }) => method !== 'GET').map(({ id }) => `${table} ${id}`),
  )
  assert.deepEqual(Object.keys(byOperation).toSorted(), [...changing, ...CHANGING_READS].toSorted())
})

test('every command of the operator declares its audit actions, or why it has none', () => {
  const names = commands.map(({ name }) => name).filter((name) => name.startsWith('admin '))
  assert.deepEqual(Object.keys(byCommand).toSorted(), [...names, 'serve'].toSorted())
})

test('every audit action belongs to an operation or a command, and has a text in the dashboard', () => {
  const declared = [...Object.values(byOperation), ...Object.values(byCommand)].flatMap((each) =>
    'none' in each ? [] : each,
  )
  assert.deepEqual([...new Set(declared)].toSorted(), Object.keys(auditActions).toSorted())
  const texts = readFileSync(new URL('../../web/src/audit/entry-text.ts', import.meta.url), 'utf8')
  const labels = readFileSync(new URL('../../web/src/audit/action-labels.ts', import.meta.url), 'utf8')
  for (const [action, { target }] of Object.entries(auditActions))
    assert.equal(
      labels.includes(`'${action}': `),
      !['edge', 'database'].includes(target) && action !== 'device.denied',
      `${action} in the filter of a workspace's log`,
    )
  for (const action of declared) assert.ok(texts.includes(`case '${action}':`), `no text for ${action}`)
})
