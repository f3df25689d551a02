// API keys: their metadata in both variants; creation and revocation in variant A alone.
import Type from 'typebox'
import { Instant, InstantOrNull, Label, TokenId } from './fields.ts'
import { operation } from './operation.ts'

const ApiKey = Type.Object(
  {
    id: TokenId,
    label: Label,
    createdAt: Instant,
    lastUsedAt: InstantOrNull('When the key was last used, at most 5 s late; null before its first use.'),
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
    'Lists the workspace’s keys, revoked ones included, newest first; never a secret. Without `limit` and ' +
    '`cursor` the list is whole; past 1,000 keys it is streamed and has no `ETag`. With `limit`, follow the `Link` ' +
    'header with `rel="next"` until there is none.',
  query: Type.Object({
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 1000, description: 'The most keys to return in one page.' }),
    ),
    cursor: Type.Optional(
      Type.String({
        pattern: '^tok_[0-9a-z]{1,64}$',
        description:
          'Where the page begins, as the `Link` header of the page before gave it: the id of that page’s last key.',
        'x-rule': 'must be the id of the last key of the page before',
      }),
    ),
  }),
  response: {
    status: 200,
    description: 'The keys.',
    schema: Type.Object({ tokens: Type.Array(ApiKey) }, { title: 'ApiKeyList' }),
    example: { tokens: [exampleKey] },
    paged: true,
  },
  faults: [],
  tool: {
    name: 'list_api_keys',
    title: 'List API keys',
    description:
      'Lists the workspace’s keys, revoked ones included, newest first; never a secret. Returns at most 100 keys, or ' +
      'as many as `limit` says. Call again with the id of the last key as `cursor` until fewer keys come than that.',
    hints: { readOnly: true },
  },
})

export const createToken = operation({
  id: 'tokens.create',
  method: 'POST',
  path: '/tokens',
  access: 'key',
  summary: 'Create an API key',
  description:
    'Mints a key for the workspace. The raw key is in `token` of this answer and cannot be read again. ' +
    'Send an `Idempotency-Key` so that a retry after a lost answer returns the same key instead of another one.',
  headers: Type.Object({
    'idempotency-key': Type.Optional(
      Type.String({
        pattern: '^[\\x21-\\x7e]{1,255}$',
        description:
          'A value of your choice, such as a UUID. For 24 hours the same value from the same API key returns the ' +
          'first answer; with another body it is refused.',
        examples: ['5f3c1a52-6d0e-4a0f-9b3e-2f1f6a1c7d10'],
        'x-rule': 'must be 1 to 255 printable ASCII characters without spaces',
      }),
    ),
  }),
  body: Type.Object(
    { label: Type.Optional(Label) },
    { title: 'NewApiKey', description: 'Unknown members are ignored.', examples: [{ label: 'ci' }] },
  ),
  response: {
    status: 201,
    description: 'The new key, with its secret.',
    schema: Type.Object(
      {
        id: TokenId,
        token: Type.String({ description: 'The raw key. It is shown here and never again.' }),
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
      'Mints a key for the workspace; each call makes another one. The raw key is in `token` of the result and cannot ' +
      'be read again. It is a secret: hand it to the user or put it where secrets are kept, and repeat it nowhere ' +
      'else, neither in files under version control nor in logs nor in messages to others.',
    hints: { destructive: false, idempotent: false },
  },
})

export const revokeToken = operation({
  id: 'tokens.revoke',
  method: 'DELETE',
  path: '/tokens/{id}',
  access: 'key',
  summary: 'Revoke an API key',
  description:
    'Revokes a key of the workspace for good; a key may revoke itself. A key that does not exist, belongs to ' +
    'another workspace or is already revoked is 404.',
  params: Type.Object({ id: TokenId }),
  response: {
    status: 200,
    description: 'The key is revoked.',
    schema: Type.Object({ id: TokenId, revoked: Type.Literal(true) }, { title: 'Revoked' }),
    example: { id: exampleKey.id, revoked: true },
  },
  faults: ['not_found'],
  tool: {
    name: 'revoke_api_key',
    title: 'Revoke an API key',
    description:
      'Revokes a key of the workspace for good: whatever uses it is refused from then on. There is no way back, so be ' +
      'sure of the id. The key that you act with can be revoked too, and is then of no more use to you.',
    hints: { destructive: true, idempotent: true },
  },
})
