// Notices to the owners and admins of a workspace, and its quotas, in the dashboard.
import Type from 'typebox'
import {
  Count,
  Id,
  Instant,
  InstantOrNull,
  IntegerOrNull,
  Label,
  OneOf,
  ok,
  TokenId,
  UserName,
} from '../fields.ts'
import { operation } from '../operation.ts'
import { InWorkspace } from './members.ts'

const Kind = OneOf(['quota', 'edge-silent', 'key-rejected', 'key-expiry', 'webhook-disabled', 'key-request'])

/** Bytes and requests count per UTC calendar month; tunnels and keys are those open or active now. */
export const QuotaKind = OneOf(['bytes', 'requests', 'tunnels', 'keys'])

export const noticeOperations = [
  operation({
    id: 'notices.list',
    method: 'GET',
    path: '/workspaces/{workspace}/notices',
    access: 'admin',
    summary: 'List notices',
    params: Type.Object(InWorkspace),
    response: ok({
      notices: Type.Array(
        Type.Object({
          kind: Kind,
          key: Type.Optional(
            Type.Object({ id: TokenId, label: Label, lastFour: Type.String(), expiresAt: InstantOrNull() }),
          ),
          quota: Type.Optional(
            Type.Object({
              kind: QuotaKind,
              percent: Type.Integer(),
              limit: Type.Integer(),
              renewsAt: InstantOrNull('Null if the quota is not monthly.'),
            }),
          ),
          request: Type.Optional(Type.Object({ id: Id, userName: UserName, label: Label })),
          webhook: Type.Optional(Type.Object({ id: Id, url: Type.String(), disabledAt: Instant })),
          edge: Type.Optional(Type.Object({ id: Type.String(), name: Type.String(), lastSyncAt: Instant })),
        }),
      ),
    }),
  }),
  operation({
    id: 'quotas.read',
    method: 'GET',
    path: '/workspaces/{workspace}/quotas',
    access: 'member',
    summary: 'Read quotas',
    params: Type.Object(InWorkspace),
    response: ok({
      renewsAt: Instant,
      quotas: Type.Array(Type.Object({ kind: QuotaKind, limit: IntegerOrNull, used: Count() })),
    }),
  }),
] as const
