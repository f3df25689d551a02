// Usage reports of edges: running totals per day, and peaks of open tunnels per minute.
import Type from 'typebox'
import { OneOf, Slug, UtcTimestamp } from '../fields.ts'
import { operation } from '../operation.ts'
import { REPORTED_BY_EDGES, Total } from './tunnel-fields.ts'

/** Maximum number of items of a report, in both lists together. */
export const REPORT_ITEMS_MAX = 5_000

const CounterItem = Type.Object(
  {
    workspace: Slug,
    day: Type.String({
      pattern: '^\\d{4}-\\d{2}-\\d{2}$',
      description: 'UTC day.',
      examples: ['2026-11-15'],
      'x-rule': 'must be a day such as 2026-11-15',
    }),
    requests: Total('Requests so far.'),
    bytesIn: Total('Bytes received so far.'),
    bytesOut: Total('Bytes sent so far.'),
    events: Total('Tunnels opened, closed and rejected so far.'),
    lastSeen: Type.Optional(
      UtcTimestamp({ description: 'Time of the last traffic, within that day; absent if there was none.' }),
    ),
  },
  { title: 'Counter', description: 'Running totals of this epoch, for one workspace and one UTC day.' },
)

const TunnelsItem = Type.Object(
  {
    workspace: Slug,
    minute: UtcTimestamp({ description: 'Start of the UTC minute.', examples: ['2026-11-15T10:02:00.000Z'] }),
    open: Type.Integer({
      minimum: 0,
      maximum: 1_000_000,
      description: 'Peak of concurrently open tunnels in that minute; more than 1,000 count as 1,000.',
    }),
  },
  { title: 'TunnelMinute' },
)

export const reportUsage = operation({
  id: 'usage.report',
  method: 'POST',
  path: '/usage',
  access: 'edge',
  audit: REPORTED_BY_EDGES,
  summary: 'Report usage',
  description:
    'Send running totals, not increments: everything this epoch has counted so far for a workspace and ' +
    'day, as often as you like and in any order. The maximum of the stored and the reported value is kept, ' +
    'so nothing is counted twice, and the next report makes up for a lost one. Use a new epoch each time ' +
    'the edge starts. The response is sent after the commit.\n\n' +
    'A report has at most 5,000 items. Items that cannot be accepted are listed in `rejected` with a ' +
    'reason, and the others are stored. A malformed report is rejected as a whole.\n\n' +
    'Report every 5 seconds, and vary that by 10 % at random, so that edges do not report simultaneously. ' +
    'If more reports arrive than the database can merge, some get 503: keep counting, and send the totals ' +
    'of that moment after `Retry-After` or with the next report, whichever is later.',
  body: Type.Object(
    {
      epoch: Type.String({
        pattern: '^[\\x21-\\x7e]{1,64}$',
        description: 'Identifies this run of the edge; new each time it starts.',
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
    description: 'The accepted items are committed.',
    schema: Type.Object(
      {
        accepted: Type.Integer({ minimum: 0, description: 'Number of accepted items.' }),
        rejected: Type.Array(
          Type.Object(
            {
              list: OneOf(['counters', 'tunnels']),
              index: Type.Integer({ minimum: 0, description: 'Index of the item in its list.' }),
              reason: OneOf(
                ['unknown_workspace', 'too_old', 'in_future', 'too_large', 'too_many_epochs'],
                '`unknown_workspace`: no such workspace in the group of the edge. `too_old`: more than 35 ' +
                  'days ago. `in_future`: more than 5 minutes ahead. `too_large`: more than an edge can carry for a workspace in ' +
                  'a day, or than the total of the day can hold. `too_many_epochs`: more than 100 epochs ' +
                  'of an edge in a day of a workspace. Later versions may add reasons.',
              ),
            },
            { title: 'RejectedItem' },
          ),
        ),
      },
      { title: 'ReportReceipt' },
    ),
    example: {
      accepted: 1,
      rejected: [{ list: 'counters', index: 0, reason: 'unknown_workspace' }],
    },
  },
})
