// A workspace in the dashboard: its details, API keys and usage.
import Type from 'typebox'
import { type KeyState, keyStates } from '../../credentials/key-state.ts'
import { type Overlap, overlaps } from '../../credentials/rotation.ts'
import {
  Count,
  HostName,
  Instant,
  InstantOrNull,
  Label,
  Slug,
  TokenId,
  UtcTimestamp,
  WorkspaceName,
} from '../fields.ts'
import { operation } from '../operation.ts'
import { InWorkspace, Role } from './members.ts'
import { Cursor, Limit, NextPage } from './pages.ts'
import { examplePolicy, Policy } from './settings.ts'

const readWorkspace = operation({
  id: 'workspace.read',
  method: 'GET',
  path: '/workspaces/{workspace}',
  access: 'member',
  summary: 'Get the workspace',
  description: 'Returns the workspace and the role of the signed-in user.',
  params: Type.Object(InWorkspace),
  response: {
    status: 200,
    description: 'The workspace.',
    schema: Type.Object(
      {
        slug: Slug,
        name: WorkspaceName,
        provisioned: Type.Boolean({ description: 'Whether tunnels may be opened for this workspace.' }),
        tunnelBase: HostName({ description: 'Parent host name of the workspace’s tunnels.' }),
        exampleUrl: HostName({ description: 'Host name of an example tunnel.' }),
        createdAt: Instant,
        role: Role,
        edgeName: Type.Unsafe<string | null>({
          type: ['string', 'null'],
          description: 'Name of an active edge of this server; null before one is registered.',
        }),
        keysCanManageKeys: Type.Boolean({
          description:
            'Whether API keys can create and revoke API keys, unless the policy forbids it (variant A), or only users (variant B).',
        }),
        policy: Policy,
      },
      { title: 'WorkspaceDetails' },
    ),
    example: {
      slug: 'acme',
      name: 'Acme',
      provisioned: true,
      tunnelBase: 'acme.tunnels.example.com',
      exampleUrl: 'my-app.acme.tunnels.example.com',
      createdAt: '2026-11-01T09:30:00.000Z',
      role: 'owner',
      edgeName: 'fra-1',
      keysCanManageKeys: true,
      policy: examplePolicy,
    },
  },
  faults: [],
})

const exampleKey = {
  id: 'tok_01k9x2m4q7r8s9t0v1w2x3y4z5',
  label: 'ci',
  createdAt: '2026-11-01T09:30:00.000Z',
  createdBy: 'Ann Example',
  lastUsedAt: '2026-11-15T10:02:11.000Z',
  revokedAt: null,
  state: 'active' as const,
  expiresAt: '2027-02-01T09:30:00.000Z',
}

const Expiry = InstantOrNull('When the key expires; null if it does not.')

const State = (description: string) =>
  Type.Unsafe<KeyState>({ type: 'string', enum: [...keyStates], description })

const listKeys = operation({
  id: 'keys.list',
  method: 'GET',
  path: '/workspaces/{workspace}/keys',
  access: 'member',
  summary: 'List API keys',
  description: 'Lists API keys, newest first, in pages. Raw keys are never included.',
  params: Type.Object(InWorkspace),
  query: Type.Object({
    state: Type.Optional(State('Only keys in this state; all keys if absent.')),
    limit: Limit,
    cursor: Cursor,
  }),
  response: {
    status: 200,
    description: 'A page of keys.',
    schema: Type.Object(
      {
        keys: Type.Array(
          Type.Object(
            {
              id: TokenId,
              label: Label,
              createdAt: Instant,
              createdBy: Type.Unsafe<string | null>({
                type: ['string', 'null'],
                description:
                  'Who created it: the user’s name at that time, or the label of the API key; null if not ' +
                  'recorded.',
              }),
              lastUsedAt: InstantOrNull(
                'When the key was last used, delayed by up to 5 seconds; null if never.',
              ),
              revokedAt: InstantOrNull('When the key was revoked or expired; null while it is active.'),
              state: State('Its state at the time of the response.'),
              expiresAt: Expiry,
            },
            { title: 'KeyOfWorkspace' },
          ),
        ),
        next: NextPage,
      },
      { title: 'KeyPage' },
    ),
    example: { keys: [exampleKey], next: null },
  },
  faults: [],
})

const newKey = {
  id: TokenId,
  token: Type.String(),
  label: Label,
  createdAt: Instant,
  expiresAt: Expiry,
}

const exampleNewKey = {
  id: exampleKey.id,
  token: 'adit_EXAMPLEexampleEXAMPLEexampleEXAMPLEexampleEXAMPLE',
  label: 'ci',
  createdAt: '2026-11-15T10:02:11.000Z',
  expiresAt: null,
}

const createKey = operation({
  id: 'keys.create',
  method: 'POST',
  path: '/workspaces/{workspace}/keys',
  access: 'admin',
  summary: 'Create an API key',
  description: 'The raw key is in `token` of this response and cannot be retrieved again.',
  params: Type.Object(InWorkspace),
  body: Type.Object(
    {
      label: Type.Optional(Label),
      expiresAt: Type.Optional(
        UtcTimestamp({
          description:
            'When the key expires, rounded up to a second. If absent, it has the longest life that the ' +
            'policy allows.',
        }),
      ),
    },
    { title: 'NewKey' },
  ),
  response: {
    status: 201,
    description: 'The new key.',
    schema: Type.Object(newKey, { title: 'NewKeyOfWorkspace' }),
    example: exampleNewKey,
    secret: true,
  },
  faults: [],
})

const revokeKey = operation({
  id: 'keys.revoke',
  method: 'DELETE',
  path: '/workspaces/{workspace}/keys/{id}',
  access: 'admin',
  summary: 'Revoke an API key',
  description: 'Revokes the key permanently, effective immediately on every node.',
  params: Type.Object({ ...InWorkspace, id: TokenId }),
  response: {
    status: 200,
    description: 'The API key was revoked.',
    schema: Type.Object({ id: TokenId, revoked: Type.Literal(true) }, { title: 'RevokedKeyOfWorkspace' }),
    example: { id: exampleKey.id, revoked: true },
  },
  faults: [],
})

const rotateKey = operation({
  id: 'keys.rotate',
  method: 'POST',
  path: '/workspaces/{workspace}/keys/{id}/rotate',
  access: 'admin',
  summary: 'Rotate an API key',
  description:
    'Creates a successor with the same label and lifetime, whose raw key is in `token` of this response and ' +
    'cannot be retrieved again. The old key expires at the end of the overlap, or earlier if it did before; ' +
    'without an overlap it is revoked. Fails with 409 if the key has an active successor.',
  params: Type.Object({ ...InWorkspace, id: TokenId }),
  body: Type.Object(
    {
      overlap: Type.Unsafe<Overlap>({
        type: 'string',
        enum: [...overlaps],
        description: 'How long both keys are valid.',
      }),
    },
    { title: 'Rotation' },
  ),
  response: {
    status: 201,
    description: 'The successor.',
    schema: Type.Object(
      {
        ...newKey,
        predecessor: Type.Object({
          id: TokenId,
          expiresAt: InstantOrNull('When the old key expires; null if it was revoked.'),
        }),
      },
      { title: 'SuccessorKey' },
    ),
    example: {
      ...exampleNewKey,
      predecessor: { id: 'tok_01k8a2m4q7r8s9t0v1w2x3y4z5', expiresAt: '2026-11-16T10:02:11.000Z' },
    },
    secret: true,
  },
  faults: ['conflict'],
})

const figures = {
  requests: Count('Number of requests.'),
  bytesIn: Count('Bytes received.'),
  bytesOut: Count('Bytes sent.'),
  peakTunnels: Count('Peak of concurrently open tunnels.'),
  events: Count('Number of tunnels opened, closed and rejected.'),
}

const readUsage = operation({
  id: 'usage.read',
  method: 'GET',
  path: '/workspaces/{workspace}/usage',
  access: 'member',
  summary: 'Get usage',
  description:
    'Returns the totals and a series per UTC day of the last `days` days, including today. Integers are ' +
    'exact.',
  params: Type.Object(InWorkspace),
  query: Type.Object({
    days: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 365,
        default: 30,
        description: 'Number of days, including today.',
      }),
    ),
  }),
  response: {
    status: 200,
    description: 'Totals and daily series.',
    schema: Type.Object(
      {
        ...figures,
        lastSeen: InstantOrNull(
          'Time of the last traffic, also if before the range; null if there was none.',
        ),
        series: Type.Array(Type.Object({ day: Instant, ...figures }, { title: 'UsageDayOfWorkspace' }), {
          description: 'One entry per day, oldest first. Today is partial.',
        }),
      },
      { title: 'UsageOfWorkspace' },
    ),
    example: {
      requests: 12,
      bytesIn: 3400,
      bytesOut: 91000,
      peakTunnels: 3,
      events: 4,
      lastSeen: '2026-11-15T10:02:11.000Z',
      series: [
        {
          day: '2026-11-15T00:00:00.000Z',
          requests: 12,
          bytesIn: 3400,
          bytesOut: 91000,
          peakTunnels: 3,
          events: 4,
        },
      ],
    },
  },
  faults: [],
})

export const workspaceOperations = [
  readWorkspace,
  listKeys,
  createKey,
  revokeKey,
  rotateKey,
  readUsage,
] as const
