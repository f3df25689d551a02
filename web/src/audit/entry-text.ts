// Text of audit log entries.
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

export function describeEntry(entry: Entry): EntryText {
  const { actor, target, action } = entry
  const isSelf = actor.id === target.id
  const key = target.name ? `“${target.name}”` : target.id
  const name = target.name || target.id
  const text = (verb: string, object = ''): EntryText => ({ actor: actorName(actor), verb, object })
  const roleChanged = (role: string): EntryText =>
    isSelf
      ? text(`changed their own role to ${role}`)
      : { ...text('changed the role of', name), suffix: `to ${role}` }
  switch (action) {
    case 'workspace.created':
      return text('created the workspace')
    case 'workspace.provisioned':
      return text('provisioned the workspace')
    case 'workspace.archived':
      return text('archived the workspace')
    case 'workspace.restored':
      return text('restored the workspace')
    case 'workspace.renamed':
      return { ...text('renamed the workspace'), suffix: renaming(entry) }
    case 'workspace.policy-changed':
      return text('changed the policy of the workspace')
    case 'workspace.quota-changed':
      return text('changed the quotas of the workspace')
    case 'key.created':
      return { ...text('created API key', key), ...(entry.detail === 'forced' && overridden) }
    case 'key.revoked':
      return text('revoked API key', key)
    case 'key.rotated':
      return text('rotated API key', key)
    case 'device.approved':
      return text('approved the sign-in of device', name)
    case 'device.denied':
      return text('denied the sign-in of device', name)
    case 'device.failed':
      return text('could not sign in device', name)
    case 'tunnel.closed':
      return text('closed tunnel', name)
    case 'name.reserved':
      return text('reserved tunnel name', name)
    case 'name.released':
      return text('released tunnel name', name)
    case 'name.rules-changed':
      return text('changed the access rules of tunnel name', name)
    case 'port.released':
      return text('released the port of tunnel name', name)
    case 'webhook.created':
      return text('added webhook', name)
    case 'webhook.changed':
      return text('changed webhook', name)
    case 'webhook.enabled':
      return text('enabled webhook', name)
    case 'webhook.disabled':
      return text('disabled webhook', name)
    case 'webhook.deleted':
      return text('deleted webhook', name)
    case 'webhook.secret-rotated':
      return text('rotated the secret of webhook', name)
    case 'webhook.tested':
      return text('sent a test event to webhook', name)
    case 'webhook.resent':
      return text('resent an event to webhook', name)
    case 'usage.reset':
      return text('reset the usage of', name)
    case 'usage.demo-added':
      return text('added sample usage of', name)
    case 'audit.exported':
      return text('exported the audit log')
    case 'edge.created':
      return text('created edge', name)
    case 'edge.revoked':
      return text('revoked edge', name)
    case 'database.migrated':
      return text('migrated the database')
    case 'database.backed-up':
      return text('backed up the database')
    case 'database.cleaned-up':
      return text('deleted expired data')
    case 'database.distributed':
      return text('distributed the database over a cluster')
    case 'user.invited':
      return { ...text('invited', name), suffix: `as ${entry.changes.role?.[1]}` }
    case 'invitation.revoked':
      return text('revoked the invitation of', name)
    case 'user.joined':
      return isSelf ? text('joined the workspace') : text('added', name)
    case 'user.made-member':
      return roleChanged('member')
    case 'user.made-admin':
      return roleChanged('admin')
    case 'user.made-owner':
      return roleChanged('owner')
    case 'user.reset-link-created':
      return actor.kind === 'anonymous'
        ? { actor: '', verb: 'Password reset link requested for', object: name }
        : text('created a password reset link for', name)
    case 'user.removed':
      return text('removed', name)
    case 'user.left':
      return text('left the workspace')
    case 'user.password-reset':
      return isSelf ? text('reset their password') : text('reset the password of', name)
    case 'user.disabled':
      return text('disabled the account of', name)
    case 'user.enabled':
      return text('enabled the account of', name)
    case 'user.renamed':
      return text('changed their name')
    case 'user.password-changed':
      return text('changed their password')
    case 'user.two-factor-started':
      return text('started setting up two-factor authentication')
    case 'user.two-factor-enabled':
      return text('turned on two-factor authentication')
    case 'user.two-factor-disabled':
      return text('turned off two-factor authentication')
    case 'user.two-factor-reset':
      return text('turned off two-factor authentication for', name)
    case 'user.signed-in':
      return text(`signed in ${methods[entry.detail ?? ''] ?? ''}`)
    case 'user.signed-out':
      return text('signed out')
    case 'user.signed-out-everywhere':
      return text('signed out everywhere')
    case 'user.session-ended':
      return text('ended one of their sessions')
    case 'user.identity-linked':
      return text('linked their account to the identity provider')
    case 'user.sign-in-failed':
      return { actor: '', verb: 'Failed sign-in as', object: name, suffix: failureReason(entry) }
    case 'user.confirmation-failed':
      return { ...text('failed to confirm their identity'), suffix: failureReason(entry) }
    default:
      return text(action, name)
  }
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
