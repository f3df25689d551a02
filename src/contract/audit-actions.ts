// The actions of the audit log.

type TargetKind =
  | 'workspace'
  | 'key'
  | 'request'
  | 'device'
  | 'agent'
  | 'edge'
  | 'usage'
  | 'tunnel'
  | 'name'
  | 'port'
  | 'user'
  | 'invitation'
  | 'audit'
  | 'database'
  | 'webhook'

interface ActionInfo {
  /** The kind of resource that the action changes. */
  readonly target: TargetKind
  /** Set for actions on an account: members see only their own, admins and owners those of all members. */
  readonly onAccount?: true
  /**
   * Repetitions within a minute share an entry with a count. Only for actions that grant nothing: those of
   * keys, roles, policies and access rules are entries of their own.
   */
  readonly repeats?: true
}

const onAccount = { target: 'user', onAccount: true } as const

export const auditActions = {
  'workspace.created': { target: 'workspace' },
  'workspace.provisioned': { target: 'workspace' },
  'workspace.archived': { target: 'workspace' },
  'workspace.restored': { target: 'workspace' },
  'workspace.renamed': { target: 'workspace', repeats: true },
  'workspace.policy-changed': { target: 'workspace' },
  'workspace.quota-changed': { target: 'workspace' },
  'workspace.group-changed': { target: 'workspace' },
  'key.created': { target: 'key' },
  'key.revoked': { target: 'key' },
  'key.rotated': { target: 'key' },
  'key.requested': { target: 'request' },
  'key.request-approved': { target: 'request' },
  'key.request-declined': { target: 'request' },
  'key.request-withdrawn': { target: 'request' },
  'device.approved': { target: 'device' },
  'device.denied': { target: 'device' },
  'device.failed': { target: 'device' },
  'agent.approved': { target: 'agent' },
  'agent.denied': { target: 'agent' },
  'edge-group.created': { target: 'edge' },
  'edge.created': { target: 'edge' },
  'edge.url-changed': { target: 'edge' },
  'edge.revoked': { target: 'edge' },
  'usage.reset': { target: 'usage' },
  'usage.demo-added': { target: 'usage' },
  'tunnel.closed': { target: 'tunnel' },
  'name.reserved': { target: 'name' },
  'name.released': { target: 'name' },
  'name.rules-changed': { target: 'name' },
  'port.released': { target: 'port' },
  'user.invited': { target: 'invitation' },
  'invitation.revoked': { target: 'invitation' },
  'user.joined': { target: 'user' },
  'user.made-member': { target: 'user' },
  'user.made-admin': { target: 'user' },
  'user.made-owner': { target: 'user' },
  'user.removed': { target: 'user' },
  'user.left': { target: 'user' },
  'user.renamed': { target: 'user', repeats: true },
  'user.disabled': { target: 'user' },
  'user.enabled': { target: 'user' },
  'audit.exported': { target: 'audit' },
  'database.migrated': { target: 'database' },
  'database.backed-up': { target: 'database' },
  'database.cleaned-up': { target: 'database' },
  'database.distributed': { target: 'database' },
  'webhook.created': { target: 'webhook' },
  'webhook.changed': { target: 'webhook' },
  'webhook.enabled': { target: 'webhook' },
  'webhook.disabled': { target: 'webhook' },
  'webhook.deleted': { target: 'webhook' },
  'webhook.secret-rotated': { target: 'webhook' },
  'webhook.tested': { target: 'webhook', repeats: true },
  'webhook.resent': { target: 'webhook', repeats: true },
  'user.signed-in': onAccount,
  'user.sign-in-failed': onAccount,
  'user.confirmation-failed': onAccount,
  'user.signed-out': onAccount,
  'user.signed-out-everywhere': onAccount,
  'user.session-ended': onAccount,
  'user.identity-linked': onAccount,
  'user.reset-link-created': onAccount,
  'user.password-reset': onAccount,
  'user.password-changed': onAccount,
  'user.two-factor-started': onAccount,
  'user.two-factor-enabled': onAccount,
  'user.two-factor-disabled': onAccount,
  'user.two-factor-reset': onAccount,
} as const satisfies Record<string, ActionInfo>

export type AuditAction = keyof typeof auditActions

/**
 * Actions that all members may see. It is an allowlist, because a newer version, which shares the database
 * during a rolling update, may write actions that this one does not know.
 */
export const visibleActions: ReadonlySet<string> = new Set(
  Object.entries<ActionInfo>(auditActions).flatMap(([action, info]) => (info.onAccount ? [] : [action])),
)

export const isRepeatable = (action: AuditAction): boolean => {
  const { repeats }: ActionInfo = auditActions[action]
  return repeats === true
}

/** Null for an action of a newer version. */
export const targetKind = (action: string): TargetKind | null =>
  Object.hasOwn(auditActions, action) ? auditActions[action as AuditAction].target : null
