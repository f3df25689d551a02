// Notices to the owners and admins of a workspace, and its quotas, in the dashboard.
import Type from 'typebox'
import { Count, Id, Instant, InstantOrNull, Label, TokenId } from '../fields.ts'
import { operation } from '../operation.ts'
import { InWorkspace } from './members.ts'

const kinds = ['quota', 'edge-silent', 'key-rejected', 'key-expiry', 'webhook-disabled'] as const

const QuotaKind = Type.Unsafe<'bytes' | 'requests' | 'tunnels' | 'keys'>({
  type: 'string',
  enum: ['bytes', 'requests', 'tunnels', 'keys'],
  description: 'Bytes and requests are per UTC calendar month; tunnels and keys at a time.',
})

const listNotices = operation({
  id: 'notices.list',
  method: 'GET',
  path: '/workspaces/{workspace}/notices',
  access: 'admin',
  summary: 'List notices',
  description:
    'Lists what needs attention, at most 100: quotas of which 80 % or all is used, edges with tunnels of the ' +
    'workspace that have not reported for 5 minutes, revoked or expired keys that were used a lot in the last ' +
    '7 days, webhook endpoints that the server has disabled, and API keys that expire within 7 days, unless ' +
    'they have an active successor.',
  params: Type.Object(InWorkspace),
  response: {
    status: 200,
    description: 'The notices.',
    schema: Type.Object(
      {
        notices: Type.Array(
          Type.Object(
            {
              kind: Type.Unsafe<(typeof kinds)[number]>({ type: 'string', enum: [...kinds] }),
              key: Type.Optional(
                Type.Object({
                  id: TokenId,
                  label: Label,
                  lastFour: Type.String(),
                  expiresAt: InstantOrNull('Of a key that expires.'),
                }),
              ),
              quota: Type.Optional(
                Type.Object({
                  kind: QuotaKind,
                  percent: Type.Integer({ description: '80 or 100.' }),
                  limit: Type.Integer(),
                  renewsAt: Instant,
                }),
              ),
              webhook: Type.Optional(
                Type.Object({
                  id: Id,
                  url: Type.String({ description: 'Without its path, which only owners see.' }),
                  disabledAt: Instant,
                }),
              ),
              edge: Type.Optional(
                Type.Object({ id: Type.String(), name: Type.String(), lastReportAt: Instant }),
              ),
            },
            { title: 'Notice' },
          ),
        ),
      },
      { title: 'Notices' },
    ),
    example: {
      notices: [
        {
          kind: 'key-expiry',
          key: {
            id: 'tok_01k9x2m4q7r8s9t0v1w2x3y4z5',
            label: 'ci',
            lastFour: 'x7Qp',
            expiresAt: '2026-11-20T10:02:11.000Z',
          },
        },
      ],
    },
  },
  faults: [],
})

const readQuotas = operation({
  id: 'quotas.read',
  method: 'GET',
  path: '/workspaces/{workspace}/quotas',
  access: 'member',
  summary: 'Read quotas',
  description: 'Returns the quotas of the workspace, and what is used of each.',
  params: Type.Object(InWorkspace),
  response: {
    status: 200,
    description: 'The quotas.',
    schema: Type.Object(
      {
        renewsAt: { ...Instant, description: 'When quotas per month renew.' },
        quotas: Type.Array(
          Type.Object(
            {
              kind: QuotaKind,
              limit: Type.Unsafe<number | null>({
                type: ['integer', 'null'],
                description: 'Null: no limit.',
              }),
              used: Count('What is used.'),
            },
            { title: 'Quota' },
          ),
        ),
      },
      { title: 'Quotas' },
    ),
    example: {
      renewsAt: '2026-12-01T00:00:00.000Z',
      quotas: [{ kind: 'bytes', limit: 500_000_000_000, used: 94_400 }],
    },
  },
  faults: [],
})

export const noticeOperations = [listNotices, readQuotas] as const
