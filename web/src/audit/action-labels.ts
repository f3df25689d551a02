// Actions of a workspace's audit log, as options of the filter.

export const actionLabels: { group: string; items: Record<string, string> }[] = [
  {
    group: 'API keys',
    items: {
      'key.created': 'Key created',
      'key.rotated': 'Key rotated',
      'key.revoked': 'Key revoked',
      'device.approved': 'Device approved',
      'device.failed': 'Device not signed in',
    },
  },
  {
    group: 'Tunnels',
    items: {
      'tunnel.closed': 'Tunnel closed',
      'name.reserved': 'Name reserved',
      'name.released': 'Name released',
      'name.rules-changed': 'Access rules changed',
    },
  },
  {
    group: 'Members',
    items: {
      'person.invited': 'Invitation created',
      'invitation.revoked': 'Invitation revoked',
      'person.joined': 'Member joined',
      'person.made-member': 'Role changed to member',
      'person.made-admin': 'Role changed to admin',
      'person.made-owner': 'Role changed to owner',
      'person.removed': 'Member removed',
      'person.left': 'Member left',
      'person.renamed': 'User renamed',
      'person.disabled': 'User disabled',
      'person.enabled': 'User enabled',
    },
  },
  {
    group: 'Sign-in and accounts',
    items: {
      'person.signed-in': 'Signed in',
      'person.sign-in-failed': 'Sign-in failed',
      'person.confirmation-failed': 'Confirmation failed',
      'person.signed-out': 'Signed out',
      'person.signed-out-everywhere': 'Signed out everywhere',
      'person.session-ended': 'Session ended',
      'person.identity-linked': 'Identity linked',
      'person.password-changed': 'Password changed',
      'person.reset-link-made': 'Reset link created',
      'person.password-reset': 'Password reset',
      'person.second-factor-begun': 'Two-factor setup started',
      'person.second-factor-added': 'Two-factor turned on',
      'person.second-factor-removed': 'Two-factor turned off',
      'person.second-factor-cleared': 'Two-factor turned off by the operator',
    },
  },
  {
    group: 'Workspace',
    items: {
      'workspace.created': 'Workspace created',
      'workspace.provisioned': 'Workspace provisioned',
      'workspace.renamed': 'Workspace renamed',
      'workspace.policy-changed': 'Policy changed',
      'workspace.quota-changed': 'Quotas changed',
      'workspace.archived': 'Workspace archived',
      'workspace.restored': 'Workspace restored',
      'usage.reset': 'Usage reset',
      'usage.demo-added': 'Sample usage added',
      'audit.exported': 'Audit log exported',
    },
  },
]
