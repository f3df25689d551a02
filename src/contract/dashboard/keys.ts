// API keys of a workspace in the dashboard.
import Type from 'typebox'
import { type KeyState, keyStates } from '../../lib/credentials/key-state.ts'
import { type Overlap, overlaps } from '../../lib/credentials/rotation.ts'
import { Instant, InstantOrNull, Label, SearchText, TokenId, UtcTimestamp } from '../fields.ts'
import { operation, STRICT } from '../operation.ts'
import { InWorkspace } from './members.ts'
import { Cursor, Limit, NextPage } from './pages.ts'

const exampleKey = {
  id: 'tok_01k9x2m4q7r8s9t0v1w2x3y4z5',
  label: 'ci',
  createdAt: '2026-11-01T09:30:00.000Z',
  createdBy: { kind: 'user' as const, name: 'Ann Example' },
  lastUsedAt: '2026-11-15T10:02:11.000Z',
  revokedAt: null,
  state: 'active' as const,
  expiresAt: '2027-02-01T09:30:00.000Z',
  lastFour: 'x7Qp',
  successor: null,
}

const Expiry = InstantOrNull('When the key expires; null if it does not.')

const State = (description: string) =>
  Type.Unsafe<KeyState>({ type: 'string', enum: [...keyStates], description })

const keyFields = {
  id: TokenId,
  label: Label,
  createdAt: Instant,
  createdBy: Type.Object(
    {
      kind: Type.Unsafe<'user' | 'key' | 'operator'>({ type: 'string', enum: ['user', 'key', 'operator'] }),
      name: Type.String(),
    },
    {
      description:
        'Who created it, with the user’s name at that time, the label or ID of the API key, or the name of ' +
        'the operator.',
    },
  ),
  lastUsedAt: InstantOrNull('When the key was last used, delayed by up to 5 seconds; null if never.'),
  revokedAt: InstantOrNull('When the key was revoked or expired; null while it is active.'),
  state: State('Its state at the time of the response.'),
  expiresAt: Expiry,
  lastFour: Type.String({ description: 'The last four characters of the raw key.' }),
  successor: Type.Unsafe<{ id: string; lastFour: string } | null>({
    type: ['object', 'null'],
    properties: { id: TokenId, lastFour: { type: 'string' } },
    required: ['id', 'lastFour'],
    description:
      'The active key that replaces it, directly or indirectly; null if there is none. A key that has one ' +
      'cannot be rotated.',
  }),
}

const listKeys = operation({
  id: 'keys.list',
  method: 'GET',
  path: '/workspaces/{workspace}/keys',
  access: 'member',
  summary: 'List API keys',
  description:
    'Lists API keys, newest first, in pages. An active key whose successor is listed is not an item of its ' +
    'own, but in `predecessors` of that one. A request examines a limited number of keys, so a page may have ' +
    'no keys although there is a next page. Raw keys are never included.',
  params: Type.Object(InWorkspace),
  query: Type.Object({
    state: Type.Optional(State('Only keys in this state; all keys if absent.')),
    search: Type.Optional(
      SearchText({
        description:
          'Only keys whose label contains this text, or whose last four characters or ID are this text. The ' +
          'beginning of an ID is enough.',
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
              ...keyFields,
              predecessors: Type.Array(Type.Object(keyFields, { title: 'PredecessorOfKey' }), {
                description: 'The active keys that it replaces, newest first.',
              }),
            },
            { title: 'KeyOfWorkspace' },
          ),
        ),
        next: NextPage,
      },
      { title: 'KeyPage' },
    ),
    example: { keys: [{ ...exampleKey, predecessors: [] }], next: null },
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
    { title: 'NewKey', ...STRICT },
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
  endsAccess: true,
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
    'without an overlap it is revoked. Fails with 409 if the key has an active successor, or if with an ' +
    'overlap too many keys of the lineage would be active.',
  params: Type.Object({ ...InWorkspace, id: TokenId }),
  body: Type.Object(
    {
      overlap: Type.Unsafe<Overlap>({
        type: 'string',
        enum: [...overlaps],
        description: 'How long both keys are valid.',
      }),
    },
    { title: 'Rotation', ...STRICT },
  ),
  response: {
    status: 201,
    description: 'The successor.',
    schema: Type.Object(
      {
        ...newKey,
        predecessor: Type.Object({
          id: TokenId,
          state: Type.Unsafe<'active' | 'revoked'>({
            type: 'string',
            enum: ['active', 'revoked'],
            description: 'Revoked if the rotation has no overlap.',
          }),
          expiresAt: Expiry,
        }),
      },
      { title: 'SuccessorKey' },
    ),
    example: {
      ...exampleNewKey,
      predecessor: {
        id: 'tok_01k8a2m4q7r8s9t0v1w2x3y4z5',
        state: 'active' as const,
        expiresAt: '2026-11-16T10:02:11.000Z',
      },
    },
    secret: true,
  },
  faults: ['conflict'],
})

export const keyOperations = [listKeys, createKey, revokeKey, rotateKey] as const
