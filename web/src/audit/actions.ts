// The actions of the audit log: their labels in the filter, and the text of an entry.
import type { AuditAction } from '../../../src/contract/audit-actions.ts'
import type { Output } from '../api.ts'
import { operatorName } from '../format.ts'

export type Entry = Output<'audit.list'>['entries'][number]

/** Parts of a sentence; actor and object are emphasized, and empty where there is none. */
interface EntryText {
  actor: string
  verb: string
  object: string
  suffix?: string
}

interface Sentence {
  entry: Entry
  /** The name of the target. */
  name: string
  isSelf: boolean
  text: (verb: string, object?: string) => EntryText
}

/** The text says what the actor did; `…` at its end is the target. */
type Action = readonly [label: string, text: string | ((sentence: Sentence) => EntryText)]

type Actions = { [A in AuditAction]?: Action }

const roleChanged =
  (role: string) =>
  ({ isSelf, name, text }: Sentence): EntryText =>
    isSelf
      ? text(`changed their own role to ${role}`)
      : { ...text('changed the role of', name), suffix: `to ${role}` }

const keys = {
  'key.created': [
    'Key created',
    ({ entry, name, text }) => ({
      ...text('created API key', name),
      ...(entry.detail === 'forced' && overridden),
    }),
  ],
  'key.rotated': ['Key rotated', 'rotated API key …'],
  'key.revoked': [
    'Key revoked',
    ({ entry, name, text }) => ({
      ...text('revoked API key', name),
      ...(entry.detail === 'user-ended' && { suffix: 'with the access of its user' }),
      ...(entry.detail === 'code-reused' && { suffix: 'because its sign-in code was used twice' }),
      ...(entry.detail === 'two-factor-missing' && { suffix: 'of a user without two-factor authentication' }),
    }),
  ],
  'key.requested': ['Key requested', 'requested an API key …'],
  'key.request-approved': ['Key request approved', 'approved the request for API key …'],
  'key.request-declined': ['Key request declined', 'declined the request for API key …'],
  'key.request-withdrawn': ['Key request withdrawn', 'withdrew the request for API key …'],
  'device.approved': ['Device approved', 'approved the sign-in of device …'],
  'device.failed': ['Device not signed in', 'could not sign in device …'],
  'agent.approved': ['Agent approved', 'approved the sign-in of agent …'],
} satisfies Actions

const tunnels = {
  'tunnel.closed': ['Tunnel closed', 'closed tunnel …'],
  'name.reserved': ['Name reserved', 'reserved tunnel name …'],
  'name.released': ['Name released', 'released tunnel name …'],
  'name.rules-changed': ['Access rules changed', 'changed the access rules of tunnel name …'],
  'port.released': ['Port released', 'released the port of tunnel name …'],
} satisfies Actions

const webhooks = {
  'webhook.created': ['Webhook added', 'added webhook …'],
  'webhook.changed': ['Webhook changed', 'changed webhook …'],
  'webhook.enabled': ['Webhook enabled', 'enabled webhook …'],
  'webhook.disabled': ['Webhook disabled', 'disabled webhook …'],
  'webhook.deleted': ['Webhook deleted', 'deleted webhook …'],
  'webhook.secret-rotated': ['Webhook secret rotated', 'rotated the secret of webhook …'],
  'webhook.tested': ['Test event sent', 'sent a test event to webhook …'],
  'webhook.resent': ['Event resent', 'resent an event to webhook …'],
} satisfies Actions

const members = {
  'user.invited': [
    'Invitation created',
    ({ entry, name, text }) => ({ ...text('invited', name), suffix: `as ${entry.changes.role?.[1]}` }),
  ],
  'invitation.revoked': ['Invitation revoked', 'revoked the invitation of …'],
  'user.joined': [
    'Member joined',
    ({ isSelf, name, text }) => (isSelf ? text('joined the workspace') : text('added', name)),
  ],
  'user.made-member': ['Role changed to member', roleChanged('member')],
  'user.made-admin': ['Role changed to admin', roleChanged('admin')],
  'user.made-owner': ['Role changed to owner', roleChanged('owner')],
  'user.removed': ['Member removed', 'removed …'],
  'user.left': ['Member left', 'left the workspace'],
  'user.renamed': ['User renamed', 'changed their name'],
  'user.disabled': ['User disabled', 'disabled the account of …'],
  'user.enabled': ['User enabled', 'enabled the account of …'],
} satisfies Actions

const accounts = {
  'user.signed-in': [
    'Signed in',
    ({ entry, text }) => text(`signed in ${methods[entry.detail ?? ''] ?? ''}`),
  ],
  'user.sign-in-failed': [
    'Sign-in failed',
    ({ entry, name }) => ({
      actor: '',
      verb: 'Failed sign-in as',
      object: name,
      suffix: failureReason(entry),
    }),
  ],
  'user.confirmation-failed': [
    'Confirmation failed',
    ({ entry, text }) => ({ ...text('failed to confirm their identity'), suffix: failureReason(entry) }),
  ],
  'user.signed-out': ['Signed out', 'signed out'],
  'user.signed-out-everywhere': ['Signed out everywhere', 'signed out everywhere'],
  'user.session-ended': ['Session ended', 'ended one of their sessions'],
  'user.identity-linked': ['Identity linked', 'linked their account to the identity provider'],
  'user.password-changed': ['Password changed', 'changed their password'],
  'user.reset-link-created': [
    'Reset link created',
    ({ entry, name, text }) =>
      entry.actor.kind === 'anonymous'
        ? { actor: '', verb: 'Password reset link requested for', object: name }
        : text('created a password reset link for', name),
  ],
  'user.password-reset': [
    'Password reset',
    ({ isSelf, name, text }) => (isSelf ? text('reset their password') : text('reset the password of', name)),
  ],
  'user.two-factor-started': ['Two-factor setup started', 'started setting up two-factor authentication'],
  'user.two-factor-enabled': ['Two-factor turned on', 'turned on two-factor authentication'],
  'user.two-factor-disabled': ['Two-factor turned off', 'turned off two-factor authentication'],
  'user.two-factor-reset': [
    'Two-factor turned off by server admin',
    'turned off two-factor authentication for …',
  ],
} satisfies Actions

const workspace = {
  'workspace.created': ['Workspace created', 'created the workspace'],
  'workspace.provisioned': ['Workspace provisioned', 'provisioned the workspace'],
  'workspace.renamed': [
    'Workspace renamed',
    ({ entry, text }) => ({ ...text('renamed the workspace'), suffix: renaming(entry) }),
  ],
  'workspace.policy-changed': ['Policy changed', 'changed the policy of the workspace'],
  'workspace.quota-changed': ['Quotas changed', 'changed the quotas of the workspace'],
  'workspace.group-changed': ['Edge group changed', 'moved the workspace to another group of edges'],
  'workspace.archived': ['Workspace archived', 'archived the workspace'],
  'workspace.restored': ['Workspace restored', 'restored the workspace'],
  'usage.reset': ['Usage reset', 'reset the usage of …'],
  'usage.demo-added': ['Sample usage added', 'added sample usage of …'],
  'audit.exported': ['Audit log exported', 'exported the audit log'],
} satisfies Actions

/** Actions that the log of a workspace does not have. */
const others = {
  'device.denied': ['Device denied', 'denied the sign-in of device …'],
  'agent.denied': ['Agent denied', 'denied the sign-in of agent …'],
  'edge-group.created': ['Edge group created', 'created the edge group …'],
  'edge.created': ['Edge created', 'created edge …'],
  'edge.url-changed': ['Edge URL changed', 'changed the URL of edge …'],
  'edge.revoked': ['Edge revoked', 'revoked edge …'],
  'database.migrated': ['Database migrated', 'migrated the database'],
  'database.backed-up': ['Database backed up', 'backed up the database'],
  'database.cleaned-up': ['Database cleaned up', 'deleted expired data'],
  'database.distributed': ['Database distributed', 'distributed the database over a cluster'],
} satisfies Actions

export const filterGroups: Record<string, Actions> = {
  'API keys': keys,
  Tunnels: tunnels,
  Webhooks: webhooks,
  Members: members,
  'Sign-in and accounts': accounts,
  Workspace: workspace,
}

/** The compiler finds an action that is missing. */
const allActions: Record<AuditAction, Action> = {
  ...keys,
  ...tunnels,
  ...webhooks,
  ...members,
  ...accounts,
  ...workspace,
  ...others,
}

export function describeEntry(entry: Entry): EntryText {
  const { actor, target } = entry
  const name = target.kind === 'key' && target.name ? `“${target.name}”` : target.name || target.id
  const text = (verb: string, object = ''): EntryText => ({ actor: actorName(actor), verb, object })
  // A newer server may have other actions.
  const [, described = `${entry.action} …`] = (allActions as Record<string, Action>)[entry.action] ?? []
  if (typeof described !== 'string') return described({ entry, name, isSelf: actor.id === target.id, text })
  return described.endsWith(' …') ? text(described.slice(0, -2), name) : text(described)
}

const overridden = { suffix: '(policy overridden)' }

const methods: Record<string, string> = {
  password: 'with a password',
  code: 'with a password and a code',
  'recovery-code': 'with a password and a recovery code',
  sso: 'with the identity provider',
}

const reasons: Record<string, string> = {
  password: 'wrong password',
  code: 'wrong code',
  'recovery-code': 'wrong recovery code',
  'sso-not-linked': 'not linked to the identity provider',
  'sso-email-unverified': 'email not verified by the identity provider',
  disabled: 'account disabled',
}

function failureReason({ detail, count }: Entry): string {
  const reason = reasons[detail ?? ''] ?? 'rejected'
  return count > 1 ? `(${reason}, ${count} times)` : `(${reason})`
}

function renaming({ changes }: Entry): string {
  const [before, after] = changes.name ?? []
  return `from “${before}” to “${after}”`
}

export function actorName({ kind, id, name }: Entry['actor']): string {
  if (kind === 'server') return 'The server'
  if (kind === 'operator') return operatorName(name || id).replace(/^t/, 'T')
  if (kind === 'key') return `API key ${name ? `“${name}”` : id}`
  return name || id
}
