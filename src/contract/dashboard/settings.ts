// Creating a workspace, and its settings: name, policy, archiving.
import Type from 'typebox'
import { RESTORABLE_DAYS } from '../../lib/credentials/archive.ts'
import { Instant, Slug, WorkspaceName } from '../fields.ts'
import { operation, STRICT } from '../operation.ts'
import { InWorkspace } from './members.ts'

export const KEY_DAYS_MAX = 3_650

export const Policy = Type.Object(
  {
    keyDaysMax: Type.Unsafe<number | null>({
      type: ['integer', 'null'],
      minimum: 1,
      maximum: KEY_DAYS_MAX,
      description:
        'The longest life of a new API key in days; null if it is unlimited. A key that is created without ' +
        'an expiry, such as through the public API, gets the longest life.',
      'x-rule': `must be a whole number from 1 to ${KEY_DAYS_MAX}, or null`,
    }),
    keysManageKeys: Type.Boolean({
      description:
        'Whether API keys may create and revoke API keys (variant A). A key may always revoke itself.',
    }),
    keyCreators: Type.Unsafe<'admin' | 'owner'>({
      type: 'string',
      enum: ['admin', 'owner'],
      description: 'The lowest role that may create API keys in the dashboard.',
    }),
    twoFactorRequired: Type.Boolean({
      description:
        'Whether members need two-factor authentication to use this workspace. Users who only sign in with ' +
        'an identity provider are exempt.',
    }),
  },
  { title: 'Policy' },
)

export const examplePolicy = {
  keyDaysMax: 90,
  keysManageKeys: true,
  keyCreators: 'admin',
  twoFactorRequired: false,
} as const

const create = operation({
  id: 'workspaces.create',
  method: 'POST',
  path: '/workspaces',
  access: 'user',
  summary: 'Create a workspace',
  description:
    'Creates a provisioned workspace, of which the user is the owner. Returns 403 unless the operator lets users ' +
    'create workspaces (`ADIT_WORKSPACE_CREATION`).',
  body: Type.Object({ slug: Slug, name: WorkspaceName }, { title: 'NewWorkspace' }),
  response: {
    status: 201,
    description: 'The new workspace.',
    schema: Type.Object({ slug: Slug, name: WorkspaceName }, { title: 'CreatedWorkspace' }),
    example: { slug: 'acme', name: 'Acme' },
  },
  faults: ['conflict'],
})

const rename = operation({
  id: 'settings.rename',
  method: 'POST',
  path: '/workspaces/{workspace}/name',
  access: 'owner',
  summary: 'Rename the workspace',
  description: 'Changes the display name. The slug, which host names of tunnels contain, stays.',
  params: Type.Object(InWorkspace),
  body: Type.Object({ name: WorkspaceName }, { title: 'NewWorkspaceName' }),
  response: {
    status: 200,
    description: 'The new name, which every node uses from now on.',
    schema: Type.Object({ name: WorkspaceName }, { title: 'RenamedWorkspace' }),
    example: { name: 'Acme' },
  },
  faults: [],
})

const setPolicy = operation({
  id: 'settings.policy',
  method: 'POST',
  path: '/workspaces/{workspace}/policy',
  access: 'owner',
  summary: 'Change the policy',
  description:
    'Changes the given rules, effective immediately on every node; the others stay. Existing API keys keep ' +
    'their expiry. An owner who does not use two-factor authentication cannot require it.',
  params: Type.Object(InWorkspace),
  body: Type.Partial(Policy, { title: 'PolicyChange', ...STRICT }),
  response: { status: 200, description: 'The policy.', schema: Policy, example: examplePolicy },
  faults: ['conflict'],
})

export const Archive = {
  archivedAt: { ...Instant, description: 'When the workspace was archived.' },
  restorableUntil: { ...Instant, description: 'Until when the operator can restore it.' },
}

const archive = operation({
  id: 'settings.archive',
  method: 'POST',
  path: '/workspaces/{workspace}/archive',
  access: 'owner',
  summary: 'Archive the workspace',
  description:
    'Effective on every node with this response: its API keys are rejected, its tunnels are closed, and its ' +
    `members cannot use it. All data is kept. The operator can restore it for ${RESTORABLE_DAYS} days with ` +
    '`adit admin workspace restore`.',
  params: Type.Object(InWorkspace),
  body: Type.Object(
    { confirm: { ...Slug, description: 'The slug of the workspace, as a confirmation.' } },
    { title: 'ArchiveConfirmation' },
  ),
  response: {
    status: 200,
    description: 'The workspace is archived.',
    schema: Type.Object(Archive, { title: 'ArchivedWorkspace' }),
    example: { archivedAt: '2026-11-15T10:02:11.000Z', restorableUntil: '2026-12-15T10:02:11.000Z' },
  },
  faults: [],
})

export const settingsOperations = [create, rename, setPolicy, archive] as const
