// Usage over a range of UTC days, in both variants.
import Type, { type TProperties, type TSchema } from 'typebox'
import { Count, Instant, InstantOrNull, UsageDays } from '../fields.ts'
import { operation } from '../operation.ts'

const day = { ...Instant, description: 'Start of the UTC day.', examples: ['2026-11-15T00:00:00.000Z'] }
const lastSeen = InstantOrNull('Time of the last traffic, also if before the range; null if there was none.')
const totalBytes = Count('Bytes in both directions.')
const peakTunnels = Count('Peak of concurrently open tunnels.')
const countersB = {
  requests: Count('Number of requests.'),
  bytesIn: Count('Bytes received.'),
  bytesOut: Count('Bytes sent.'),
  totalBytes,
}
const series = <T extends TProperties>(fields: T) =>
  Type.Array(Type.Object(fields, { title: 'UsageDay' }), {
    description: 'One entry per day, oldest first. Today is partial.',
  })

const UsageA = Type.Object(
  {
    totalBytes,
    peakTunnels,
    eventCount: Count('Number of tunnels opened, closed and rejected.'),
    lastSeen,
    series: series({ day, bytes: totalBytes, peakTunnels }),
  },
  { title: 'Usage' },
)

const UsageB = Type.Object(
  {
    ...countersB,
    lastSeen,
    series: series({ day, ...countersB }),
  },
  { title: 'Usage' },
)

const read = <T extends TSchema>(schema: T, example: unknown) =>
  operation({
    id: 'usage.read',
    method: 'GET',
    path: '/usage',
    access: 'key',
    summary: 'Get usage',
    description:
      'Returns the totals and a series per UTC day of the last `days` days, including today. Integers are ' +
      'exact and may exceed 2^53, so parse them as 64-bit integers.',
    query: Type.Object({ days: UsageDays }),
    response: { status: 200, description: 'Totals and daily series.', schema, example },
    tool: { name: 'get_usage', title: 'Get usage', hints: { readOnly: true } },
  })

export const readUsage = {
  A: read(UsageA, {
    totalBytes: 94400,
    peakTunnels: 3,
    eventCount: 4,
    lastSeen: '2026-11-15T10:02:11.000Z',
    series: [
      { day: '2026-11-14T00:00:00.000Z', bytes: 0, peakTunnels: 0 },
      { day: '2026-11-15T00:00:00.000Z', bytes: 94400, peakTunnels: 3 },
    ],
  }),
  B: read(UsageB, {
    requests: 12,
    bytesIn: 3400,
    bytesOut: 91000,
    totalBytes: 94400,
    lastSeen: '2026-11-15T10:02:11.000Z',
    series: [
      { day: '2026-11-14T00:00:00.000Z', requests: 0, bytesIn: 0, bytesOut: 0, totalBytes: 0 },
      { day: '2026-11-15T00:00:00.000Z', requests: 12, bytesIn: 3400, bytesOut: 91000, totalBytes: 94400 },
    ],
  }),
}
