// Quotas of bytes and requests per month, as edges enforce them.
import Type, { type Static } from 'typebox'
import { Instant, OneOf } from '../fields.ts'

const amount = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description }))

export const UsageQuota = Type.Object(
  {
    revision: Type.Integer({
      minimum: 0,
      description: 'Ignore a quota with a lower revision than one that was received before.',
    }),
    level: Type.Optional(
      OneOf(
        ['near', 'reached'],
        '`near`: at least 80 % are used. Report the usage of this workspace every 2 seconds. `reached`: all ' +
          'of it is used. Reject new tunnels and traffic with 429 until `until`. Absent: less is used.',
      ),
    ),
    until: Type.Optional({
      ...Instant,
      description:
        'When the month ends, and with it the level. Compare it with the clock that you count days by.',
    }),
    reportBytes: amount(
      'After so many bytes that are not reported, report the usage of this workspace within 5 seconds.',
    ),
    reportRequests: amount('The same, in requests.'),
  },
  {
    title: 'UsageQuota',
    description: 'Quotas of bytes and requests per month; absent if there are none.',
  },
)
export type UsageQuota = Static<typeof UsageQuota>
