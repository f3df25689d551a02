// What edges report: running totals, and the most tunnels open in a minute.
import Type from 'typebox'
import { Slug, UtcMoment } from './fields.ts'
import { operation } from './operation.ts'

/** Items in one report, of both lists together. */
export const REPORT_ITEMS_MAX = 5_000

/** Counters beyond what every JSON reader holds exactly are refused: they would be rounded on the way. */
const Total = (description: string) =>
  Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description })

const CounterItem = Type.Object(
  {
    workspace: Slug,
    day: Type.String({
      pattern: '^\\d{4}-\\d{2}-\\d{2}$',
      description: 'The UTC day.',
      examples: ['2026-11-15'],
      'x-rule': 'must be a day such as 2026-11-15',
    }),
    requests: Total('Requests so far.'),
    bytesIn: Total('Bytes received so far.'),
    bytesOut: Total('Bytes sent so far.'),
    events: Total('Tunnels opened, closed and refused so far.'),
    lastSeen: Type.Optional(UtcMoment({ description: 'Last traffic, within that day; absent before any.' })),
  },
  { title: 'Counter', description: 'Running totals of this epoch, for one workspace and one UTC day.' },
)

const TunnelsItem = Type.Object(
  {
    workspace: Slug,
    minute: UtcMoment({ description: 'Start of the UTC minute.', examples: ['2026-11-15T10:02:00.000Z'] }),
    open: Type.Integer({
      minimum: 0,
      maximum: 1_000_000,
      description: 'The most tunnels open in that minute.',
    }),
  },
  { title: 'TunnelMinute' },
)

const reasons = ['unknown_workspace', 'too_old', 'in_future', 'too_large', 'too_many_epochs'] as const

export const reportUsage = operation({
  id: 'usage.report',
  method: 'POST',
  path: '/usage',
  access: 'edge',
  summary: 'Report usage',
  description:
    'Takes running totals, not increments: send what this epoch has counted so far for a workspace and day, as often as ' +
    'you like and in any order. The larger of what is known and what comes is kept, so nothing is ever counted twice and ' +
    'a lost report is healed by the next. Choose a new epoch each time the edge starts. The answer comes after the ' +
    `commit. At most 5,000 items a report; an item that cannot be taken is refused ` +
    'with its reason and the others are kept, while a report that is malformed anywhere is refused whole.',
  body: Type.Object(
    {
      epoch: Type.String({
        pattern: '^[\\x21-\\x7e]{1,64}$',
        description: 'Names this run of the edge: new each time it starts.',
        examples: ['e-1'],
        'x-rule': 'must be 1 to 64 printable ASCII characters without spaces',
      }),
      counters: Type.Optional(Type.Array(CounterItem, { maxItems: REPORT_ITEMS_MAX })),
      tunnels: Type.Optional(Type.Array(TunnelsItem, { maxItems: REPORT_ITEMS_MAX })),
    },
    {
      title: 'UsageReport',
      examples: [
        {
          epoch: 'e-1',
          counters: [
            {
              workspace: 'acme',
              day: '2026-11-15',
              requests: 12,
              bytesIn: 3400,
              bytesOut: 91000,
              events: 4,
              lastSeen: '2026-11-15T10:02:11.000Z',
            },
          ],
          tunnels: [{ workspace: 'acme', minute: '2026-11-15T10:02:00.000Z', open: 3 }],
        },
      ],
    },
  ),
  bodyBytesMax: 4 * 1024 * 1024,
  response: {
    status: 200,
    description: 'What was taken is committed.',
    schema: Type.Object(
      {
        accepted: Type.Integer({ minimum: 0, description: 'How many items were taken.' }),
        refused: Type.Array(
          Type.Object(
            {
              list: Type.Unsafe<'counters' | 'tunnels'>({ type: 'string', enum: ['counters', 'tunnels'] }),
              index: Type.Integer({ minimum: 0, description: 'The place of the item in its list.' }),
              reason: Type.Unsafe<(typeof reasons)[number]>({
                type: 'string',
                enum: [...reasons],
                description:
                  'No such workspace; more than 35 days ago; more than 5 minutes ahead; more than an edge can have ' +
                  'carried for a workspace in a day, or than the day’s total can hold; an epoch beyond the 100 that ' +
                  'an edge may have in a workspace’s day. Later versions may add reasons.',
              }),
            },
            { title: 'RefusedItem' },
          ),
        ),
      },
      { title: 'ReportReceipt' },
    ),
    example: { accepted: 1, refused: [{ list: 'counters', index: 0, reason: 'unknown_workspace' }] },
  },
  faults: [],
})
