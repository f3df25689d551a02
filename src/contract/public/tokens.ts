// API keys: listing in both variants, creation and revocation in variant A. On the wire a key is called
// `token`.

import Type from 'typebox'
import { Instant, InstantOrNull, Label, TokenId } from '../fields.ts'
import { KEYS_PER_PAGE_MAX } from '../limits.ts'
import { operation } from '../operation.ts'

const ApiKey = Type.Object(
  {
    id: TokenId,
    label: Label,
    createdAt: Instant,
    lastUsedAt: InstantOrNull('When the key was last used, delayed by up to 5 seconds; null if never.'),
    revokedAt: InstantOrNull('When the key was revoked; null while it is active.'),
  },
  { title: 'ApiKey' },
)

const exampleKey = {
  id: 'tok_01k9x2m4q7r8s9t0v1w2x3y4z5',
  label: 'ci',
  createdAt: '2026-11-01T09:30:00.000Z',
  lastUsedAt: '2026-11-15T10:02:11.000Z',
  revokedAt: null,
}

export const listTokens = operation({
  id: 'tokens.list',
  method: 'GET',
  path: '/tokens',
  access: 'key',
  summary: 'List API keys',
  description:
    'Lists the API keys of the workspace, including revoked ones, newest first. Raw keys are never ' +
    'included. Without `limit` and `cursor` all keys are returned; a list of more than 1,000 is streamed ' +
    'and has no `ETag`. With `limit`, follow the `Link` header with `rel="next"` until there is none.',
  query: Type.Object({
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: KEYS_PER_PAGE_MAX,
        description: 'Maximum number of keys per page.',
      }),
    ),
    cursor: Type.Optional(
      Type.String({
        pattern: '^tok_[0-9a-z]{1,64}$',
        description: 'Id of the last key of the previous page, as in its `Link` header.',
        'x-rule': 'must be the id of the last key of the previous page',
      }),
    ),
  }),
  response: {
    status: 200,
    description: 'The API keys.',
    schema: Type.Object({ tokens: Type.Array(ApiKey) }, { title: 'ApiKeyList' }),
    example: { tokens: [exampleKey] },
    paged: true,
  },
  tool: {
    name: 'list_api_keys',
    title: 'List API keys',
    description:
      'Lists the API keys of the workspace, including revoked ones, newest first. Raw keys are never ' +
      'included. Returns at most `limit` keys, 100 by default. To get more, call again with the id of the ' +
      'last key as `cursor`, until fewer keys are returned.',
    hints: { readOnly: true },
  },
})

export const createToken = operation({
  id: 'tokens.create',
  method: 'POST',
  path: '/tokens',
  access: 'key',
  audit: ['key.created'],
  summary: 'Create an API key',
  description:
    'Creates an API key for the workspace. The raw key is in `token` of this response and cannot be ' +
    'retrieved again. Send an `Idempotency-Key`, so that a retry returns the same key instead of creating ' +
    'another one.',
  headers: Type.Object({
    'idempotency-key': Type.Optional(
      Type.String({
        pattern: '^[\\x21-\\x7e]{1,255}$',
        description:
          'A unique value, such as a UUID. For 24 hours the same value with the same API key returns the ' +
          'first response; with a different body it is rejected with 422.',
        examples: ['5f3c1a52-6d0e-4a0f-9b3e-2f1f6a1c7d10'],
        'x-rule': 'must be 1 to 255 printable ASCII characters without spaces',
      }),
    ),
  }),
  body: Type.Object(
    { label: Type.Optional(Label) },
    {
      title: 'NewApiKey',
      description: 'Unknown fields are ignored, except for an expiry, which is rejected.',
      // Ignored, it would create a key that never expires, although the caller asked for one that does.
      patternProperties: {
        '^expir\\w{0,20}$': {
          not: {},
          'x-rule':
            'is not a field of this API. Create a key that expires in the dashboard, or with ' +
            '`adit admin key create --expires`',
        },
      },
      examples: [{ label: 'ci' }],
    },
  ),
  response: {
    status: 201,
    description: 'The new API key.',
    schema: Type.Object(
      {
        id: TokenId,
        token: Type.String({ description: 'The raw key. It cannot be retrieved again.' }),
        label: Label,
        createdAt: Instant,
      },
      { title: 'CreatedApiKey' },
    ),
    example: {
      id: exampleKey.id,
      token: 'adit_EXAMPLEexampleEXAMPLEexampleEXAMPLEexampleEXAMPLE',
      label: 'ci',
      createdAt: exampleKey.createdAt,
    },
    secret: true,
  },
  faults: ['idempotency_mismatch'],
  tool: {
    name: 'create_api_key',
    title: 'Create an API key',
    description:
      'Creates an API key for the workspace; each call creates another one. The raw key is in `token` of ' +
      'the result and cannot be retrieved again. It is a secret: give it to the user or store it in a ' +
      'secret manager. Do not write it to version-controlled files, logs or messages.',
    hints: { destructive: false, idempotent: false },
  },
})

export const revokeToken = operation({
  id: 'tokens.revoke',
  method: 'DELETE',
  path: '/tokens/{id}',
  access: 'key',
  audit: ['key.revoked'],
  summary: 'Revoke an API key',
  description:
    'Revokes an API key of the workspace permanently. A key may revoke itself. Returns 404 for a key that ' +
    'does not exist, belongs to another workspace or is already revoked.',
  params: Type.Object({ id: TokenId }),
  response: {
    status: 200,
    description: 'The API key was revoked.',
    schema: Type.Object({ id: TokenId, revoked: Type.Literal(true) }, { title: 'Revoked' }),
    example: { id: exampleKey.id, revoked: true },
  },
  faults: ['not_found'],
  tool: {
    name: 'revoke_api_key',
    title: 'Revoke an API key',
    description:
      'Revokes an API key of the workspace permanently: requests with it are rejected from then on. This ' +
      'cannot be undone, so check the id. Revoking the key of this connection ends your own access.',
    hints: { destructive: true, idempotent: true },
  },
})
