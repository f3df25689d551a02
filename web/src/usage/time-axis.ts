// Ticks of the time axis: evenly spaced, ending with the last point. Recharts would measure the label of
// every point to choose its own, which is slow and may drop any of them.
import { DAY_MS } from '../../../src/lib/time.ts'
import { formatDay, formatDayShort } from '../format.ts'
import type { ChartPoint } from './weeks.ts'

/** Longer ranges cover a day of the year twice, so their labels need the year. */
const MAX_DAYS_WITHOUT_YEAR = 300

/** Labels that fit next to each other: with the year, and without. */
const MAX_LABELS = { wide: [5, 8], half: [2, 4], phone: [2, 3] } as const

export function timeAxis(points: readonly ChartPoint[], width: keyof typeof MAX_LABELS) {
  const days = (Date.parse(points.at(-1)?.day ?? '') - Date.parse(points[0]?.day ?? '')) / DAY_MS
  const withYear = days > MAX_DAYS_WITHOUT_YEAR
  const maxLabels = MAX_LABELS[width][withYear ? 0 : 1]
  const step = Math.max(1, Math.ceil(points.length / maxLabels))
  const ticks = points.map(({ day }) => day).filter((_, index) => (points.length - 1 - index) % step === 0)
  return {
    axis: { ticks, tickFormatter: withYear ? formatDay : formatDayShort, interval: 0 },
    // Half of the last label extends beyond the last point.
    margin: { top: 8, right: withYear ? 40 : 24 },
  } as const
}
