// API keys of a workspace in the dashboard.
import Type from 'typebox'
import { keyStates } from '../../lib/credentials/key-state.ts'
import { overlaps } from '../../lib/credentials/rotation.ts'
import {
  Instant,
  InstantOrNull,
  Label,
  ObjectOrNull,
  OneOf,
  ok,
  SearchText,
  TokenId,
  UtcTimestamp,
} from '../fields.ts'
import { operation, STRICT } from '../operation.ts'
import { InWorkspace } from './members.ts'
import { Cursor, Limit, NextPage } from './pages.ts'

const Expiry = InstantOrNull()

const State = OneOf(keyStates)

const keyFields = {
  id: TokenId,
  label: Label,
  createdAt: Instant,
  createdBy: Type.Object({ kind: OneOf(['user', 'key', 'operator']), name: Type.String() }),
  /** The user whose personal key it is; null for a key of the workspace. */
  user: ObjectOrNull(Type.Object({ name: Type.String(), isYou: Type.Boolean() })),
  /** The agent that has signed in with it; null for other keys. */
  agent: ObjectOrNull(Type.Object({ host: Type.String(), managesKeys: Type.Boolean() })),
  lastUsedAt: InstantOrNull(),
  revokedAt: InstantOrNull(),
  state: State,
  expiresAt: Expiry,
  lastFour: Type.String(),
  successor: ObjectOrNull(Type.Object({ id: TokenId, lastFour: Type.String() })),
}

/** The response with the raw key. */
export const newKey = {
  id: TokenId,
  token: Type.String(),
  label: Label,
  createdAt: Instant,
  expiresAt: Expiry,
}

export const keyOperations = [
  operation({
    id: 'keys.list',
    method: 'GET',
    path: '/workspaces/{workspace}/keys',
    access: 'member',
    summary: 'List API keys',
    params: Type.Object(InWorkspace),
    query: Type.Object({
      state: Type.Optional(State),
      search: Type.Optional(SearchText()),
      owner: Type.Optional(OneOf(['me'])),
      limit: Limit,
      cursor: Cursor,
    }),
    response: ok({
      keys: Type.Array(Type.Object({ ...keyFields, predecessors: Type.Array(Type.Object(keyFields)) })),
      next: NextPage,
    }),
  }),
  operation({
    id: 'keys.create',
    method: 'POST',
    path: '/workspaces/{workspace}/keys',
    access: 'member',
    audit: ['key.created'],
    summary: 'Create an API key',
    params: Type.Object(InWorkspace),
    body: Type.Object(
      {
        label: Type.Optional(Label),
        expiresAt: Type.Optional(UtcTimestamp()),
        /** Members create personal keys only. */
        personal: Type.Optional(Type.Boolean()),
      },
      STRICT,
    ),
    response: { status: 201, schema: Type.Object(newKey), secret: true },
  }),
  operation({
    id: 'keys.revoke',
    method: 'DELETE',
    path: '/workspaces/{workspace}/keys/{id}',
    access: 'member',
    audit: ['key.revoked'],
    endsAccess: true,
    summary: 'Revoke an API key',
    params: Type.Object({ ...InWorkspace, id: TokenId }),
    response: ok({ id: TokenId, revoked: Type.Literal(true) }),
  }),
  operation({
    id: 'keys.rotate',
    method: 'POST',
    path: '/workspaces/{workspace}/keys/{id}/rotate',
    access: 'member',
    audit: ['key.created', 'key.rotated'],
    summary: 'Rotate an API key',
    params: Type.Object({ ...InWorkspace, id: TokenId }),
    body: Type.Object({ overlap: OneOf(overlaps) }, STRICT),
    response: {
      status: 201,
      schema: Type.Object({
        ...newKey,
        predecessor: Type.Object({ id: TokenId, state: OneOf(['active', 'revoked']), expiresAt: Expiry }),
      }),
      secret: true,
    },
    faults: ['conflict'],
  }),
] as const
