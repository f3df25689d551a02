// Usage over a window of UTC days, in both variants.
import Type, { type TSchema } from 'typebox'
import { Count, Instant, InstantOrNull } from './fields.ts'
import { operation } from './operation.ts'

const day = { ...Instant, description: 'Start of the UTC day.', examples: ['2026-11-15T00:00:00.000Z'] }
const lastSeen = InstantOrNull('When traffic was last seen, be it before the window; null before any.')
const totalBytes = Count('Bytes in both directions over the window.')
const series = <T extends TSchema>(entry: T) =>
  Type.Array(entry, { description: 'One entry for each day of the window, oldest first, today last.' })

const UsageA = Type.Object(
  {
    totalBytes,
    peakTunnels: Count('The most tunnels open at once in the window.'),
    eventCount: Count('Tunnels opened, closed and refused in the window.'),
    lastSeen,
    series: series(
      Type.Object(
        {
          day,
          bytes: Count('Bytes in both directions on that day.'),
          peakTunnels: Count('The most tunnels open at once on that day.'),
        },
        { title: 'UsageDay' },
      ),
    ),
  },
  { title: 'Usage' },
)

const UsageB = Type.Object(
  {
    requests: Count('Requests in the window.'),
    bytesIn: Count('Bytes received in the window.'),
    bytesOut: Count('Bytes sent in the window.'),
    totalBytes,
    lastSeen,
    series: series(
      Type.Object(
        {
          day,
          requests: Count('Requests on that day.'),
          bytesIn: Count('Bytes received on that day.'),
          bytesOut: Count('Bytes sent on that day.'),
          totalBytes: Count('Bytes in both directions on that day.'),
        },
        { title: 'UsageDay' },
      ),
    ),
  },
  { title: 'Usage' },
)

const read = <T extends TSchema>(schema: T, example: unknown) =>
  operation({
    id: 'usage.read',
    method: 'GET',
    path: '/usage',
    access: 'key',
    summary: 'Read usage',
    description:
      'Returns totals and a series by UTC day over the last `days` days, today included. The days add up to the ' +
      'totals. Integers are exact and may exceed 2^53: read them as such.',
    query: Type.Object({
      days: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: 365,
          default: 30,
          description: 'Length of the window in days, in decimal digits.',
        }),
      ),
    }),
    response: { status: 200, description: 'Usage over the window.', schema, example },
    faults: [],
    tool: { name: 'get_usage', title: 'Read usage', hints: { readOnly: true } },
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
