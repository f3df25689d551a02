// What people see of a workspace: itself, its keys, its usage and its audit log.
import Type from 'typebox'
import { type KeyState, keyStates } from '../../credentials/key-state.ts'
import {
  Count,
  HostName,
  Id,
  Instant,
  InstantOrNull,
  Label,
  Slug,
  TokenId,
  WorkspaceName,
} from '../fields.ts'
import { operation } from '../operation.ts'
import { InWorkspace, Role } from './members.ts'

const Cursor = Type.Optional(
  Type.String({
    pattern: '^[a-z]{3}_[0-9a-z]{1,64}$',
    description: 'Where the page begins: `next` of the page before.',
    'x-rule': 'must be `next` of the page before',
  }),
)
const Limit = Type.Optional(
  Type.Integer({ minimum: 1, maximum: 200, default: 50, description: 'The most to return in one page.' }),
)
const NextPage = Type.Unsafe<string | null>({
  type: ['string', 'null'],
  description: 'The cursor of the next page; null on the last.',
})

const readWorkspace = operation({
  id: 'workspace.read',
  method: 'GET',
  path: '/workspaces/{workspace}',
  access: 'member',
  summary: 'Read the workspace',
  description: 'The workspace, and what the one who asks is in it.',
  params: Type.Object(InWorkspace),
  response: {
    status: 200,
    description: 'The workspace.',
    schema: Type.Object(
      {
        slug: Slug,
        name: WorkspaceName,
        provisioned: Type.Boolean({ description: 'Whether edges carry its tunnels.' }),
        tunnelBase: HostName({ description: 'Host name under which its tunnels live.' }),
        exampleUrl: HostName({ description: 'Host name of a tunnel, for example.' }),
        createdAt: Instant,
        role: Role,
        edgeName: Type.Unsafe<string | null>({
          type: ['string', 'null'],
          description: 'Name of an active edge of this server; null before one is registered.',
        }),
        keysCanManageKeys: Type.Boolean({
          description:
            'Whether API keys can make and revoke keys too (variant A), or only people can (variant B).',
        }),
      },
      { title: 'WorkspaceOfPerson' },
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
}

const listKeys = operation({
  id: 'keys.list',
  method: 'GET',
  path: '/workspaces/{workspace}/keys',
  access: 'member',
  summary: 'List API keys',
  description: 'Newest first, a page at a time; never a secret.',
  params: Type.Object(InWorkspace),
  query: Type.Object({
    state: Type.Optional(
      Type.Unsafe<KeyState>({
        type: 'string',
        enum: [...keyStates],
        description: 'Only those; all where not given.',
      }),
    ),
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
                  'Who created it: the user’s name at that time, or the label of the API key; null if not recorded.',
              }),
              lastUsedAt: InstantOrNull(
                'When it was last used, at most 5 s late; null before its first use.',
              ),
              revokedAt: InstantOrNull('When it was revoked; null while it is active.'),
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

const createKey = operation({
  id: 'keys.create',
  method: 'POST',
  path: '/workspaces/{workspace}/keys',
  access: 'admin',
  summary: 'Create an API key',
  description: 'The raw key is in `token` of this answer and cannot be read again.',
  params: Type.Object(InWorkspace),
  body: Type.Object({ label: Type.Optional(Label) }, { title: 'NewKey' }),
  response: {
    status: 201,
    description: 'The new key.',
    schema: Type.Object(
      { id: TokenId, token: Type.String(), label: Label, createdAt: Instant },
      { title: 'NewKeyOfWorkspace' },
    ),
    example: {
      id: exampleKey.id,
      token: 'adit_EXAMPLEexampleEXAMPLEexampleEXAMPLEexampleEXAMPLE',
      label: 'ci',
      createdAt: '2026-11-15T10:02:11.000Z',
    },
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
  description: 'For good and at once.',
  params: Type.Object({ ...InWorkspace, id: TokenId }),
  response: {
    status: 200,
    description: 'It is revoked.',
    schema: Type.Object({ id: TokenId, revoked: Type.Literal(true) }, { title: 'RevokedKeyOfWorkspace' }),
    example: { id: exampleKey.id, revoked: true },
  },
  faults: [],
})

const figures = {
  requests: Count('Requests.'),
  bytesIn: Count('Bytes received.'),
  bytesOut: Count('Bytes sent.'),
  peakTunnels: Count('The most tunnels open at once.'),
  events: Count('Tunnels opened, closed and refused.'),
}

const readUsage = operation({
  id: 'usage.read',
  method: 'GET',
  path: '/workspaces/{workspace}/usage',
  access: 'member',
  summary: 'Read usage',
  description:
    'Totals and a series by UTC day over the last `days` days, today included. Integers are exact.',
  params: Type.Object(InWorkspace),
  query: Type.Object({
    days: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 365, default: 30, description: 'Length of the window in days.' }),
    ),
  }),
  response: {
    status: 200,
    description: 'Usage over the window.',
    schema: Type.Object(
      {
        ...figures,
        lastSeen: InstantOrNull('When traffic was last seen, be it before the window; null before any.'),
        series: Type.Array(Type.Object({ day: Instant, ...figures }, { title: 'UsageDayOfWorkspace' }), {
          description: 'One entry for each day of the window, oldest first, today last.',
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

const listAudit = operation({
  id: 'audit.list',
  method: 'GET',
  path: '/workspaces/{workspace}/audit',
  access: 'member',
  summary: 'Read the audit log',
  description:
    'Who did what to which key or person and when, newest first, a page at a time. How others sign in is shown to admins ' +
    'and owners.',
  params: Type.Object(InWorkspace),
  query: Type.Object({ limit: Limit, cursor: Cursor }),
  response: {
    status: 200,
    description: 'A page of the log.',
    schema: Type.Object(
      {
        entries: Type.Array(
          Type.Object(
            {
              id: Id,
              at: Instant,
              actor: Type.Object({
                kind: Type.String({
                  description: 'person, key or operator; visitor for somebody who failed to sign in.',
                }),
                id: Id,
                name: Type.Unsafe<string | null>({
                  type: ['string', 'null'],
                  description: 'The name of then.',
                }),
              }),
              action: Type.String({ description: 'What was done, e.g. `key.created`.' }),
              subject: Type.Object({
                id: Id,
                name: Type.Unsafe<string | null>({
                  type: ['string', 'null'],
                  description: 'The label or name of then.',
                }),
              }),
              address: Type.Unsafe<string | null>({
                type: ['string', 'null'],
                description:
                  'The IP address that it was done from; null where it is not known. Members see their own only.',
              }),
              detail: Type.Unsafe<string | null>({
                type: ['string', 'null'],
                description: 'How somebody signed in, or what was wrong, e.g. `password`; else null.',
              }),
              count: Type.Integer({
                minimum: 1,
                description: 'How often: failures of the same kind within a minute are one entry.',
              }),
            },
            { title: 'AuditEntry' },
          ),
        ),
        next: NextPage,
      },
      { title: 'AuditPage' },
    ),
    example: {
      entries: [
        {
          id: 'aud_01k9x2m4q7r8s9t0v1w2x3y4z5',
          at: '2026-11-15T10:02:11.000Z',
          actor: { kind: 'person', id: 'usr_01k9x2m4q7r8s9t0v1w2x3y4z5', name: 'Ann Example' },
          action: 'key.created',
          subject: { id: exampleKey.id, name: 'ci' },
          address: '192.0.2.7',
          detail: null,
          count: 1,
        },
      ],
      next: null,
    },
  },
  faults: [],
})

export const workspaceOperations = [
  readWorkspace,
  listKeys,
  createKey,
  revokeKey,
  readUsage,
  listAudit,
] as const
