// Notices to the owners and admins of a workspace in the dashboard.
import Type from 'typebox'
import { Instant, Label, TokenId } from '../fields.ts'
import { operation } from '../operation.ts'
import { InWorkspace } from './members.ts'

const listNotices = operation({
  id: 'notices.list',
  method: 'GET',
  path: '/workspaces/{workspace}/notices',
  access: 'admin',
  summary: 'List notices',
  description:
    'Lists what needs attention: API keys that expire within 7 days, unless they have an active successor. ' +
    'At most 100, the next to expire first.',
  params: Type.Object(InWorkspace),
  response: {
    status: 200,
    description: 'The notices.',
    schema: Type.Object(
      {
        notices: Type.Array(
          Type.Object(
            {
              kind: Type.Literal('key-expiry'),
              key: Type.Object({
                id: TokenId,
                label: Label,
                lastFour: Type.Unsafe<string | null>({ type: ['string', 'null'] }),
                expiresAt: Instant,
              }),
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

export const noticeOperations = [listNotices] as const
