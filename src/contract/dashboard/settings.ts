// Creating a workspace, and its settings: name, policy, archiving.

import Type from 'typebox'
import { Instant, ok, Slug, WorkspaceName } from '../fields.ts'
import { KEY_DAYS_MAX } from '../limits.ts'
import { operation, STRICT } from '../operation.ts'
import { InWorkspace, Role } from './members.ts'

export const Policy = Type.Object({
  /** A key that is created without an expiry gets this lifetime. */
  keyDaysMax: Type.Unsafe<number | null>({
    type: ['integer', 'null'],
    minimum: 1,
    maximum: KEY_DAYS_MAX,
    'x-rule': `must be a whole number from 1 to ${KEY_DAYS_MAX}, or null`,
  }),
  /** Whether API keys may create and revoke API keys (variant A). A key may always revoke itself. */
  keysManageKeys: Type.Boolean(),
  /** The lowest role that may create API keys. Members create personal keys only, in variant A. */
  keyCreators: Role,
  /** Users who only sign in with an identity provider are exempt. */
  twoFactorRequired: Type.Boolean(),
})

export const Archive = Type.Object({ archivedAt: Instant, restorableUntil: Instant })

export const settingsOperations = [
  operation({
    id: 'workspaces.create',
    method: 'POST',
    path: '/workspaces',
    access: 'user',
    audit: ['workspace.created'],
    summary: 'Create a workspace',
    body: Type.Object({ slug: Slug, name: WorkspaceName }),
    response: { status: 201, schema: Type.Object({ slug: Slug, name: WorkspaceName }) },
    faults: ['conflict'],
  }),
  operation({
    id: 'settings.rename',
    method: 'POST',
    path: '/workspaces/{workspace}/name',
    access: 'owner',
    audit: ['workspace.renamed'],
    summary: 'Rename the workspace',
    params: Type.Object(InWorkspace),
    body: Type.Object({ name: WorkspaceName }),
    response: ok({ name: WorkspaceName }),
  }),
  operation({
    id: 'settings.policy',
    method: 'POST',
    path: '/workspaces/{workspace}/policy',
    access: 'owner',
    audit: ['workspace.policy-changed'],
    summary: 'Change the policy',
    params: Type.Object(InWorkspace),
    body: Type.Partial(Policy, STRICT),
    response: { status: 200, schema: Policy },
    faults: ['conflict'],
  }),
  operation({
    id: 'settings.archive',
    method: 'POST',
    path: '/workspaces/{workspace}/archive',
    access: 'owner',
    audit: ['workspace.archived'],
    summary: 'Archive the workspace',
    params: Type.Object(InWorkspace),
    body: Type.Object({ confirm: Slug }),
    response: { status: 200, schema: Archive },
  }),
] as const
