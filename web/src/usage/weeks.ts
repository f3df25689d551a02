// Usage by calendar week, for charts of a range that is too long for one point per day.
import { DAY_MS } from '../../../src/lib/time.ts'

/** Plotted values need not be exact, and the chart library accepts numbers only. */
export interface ChartPoint {
  /** ISO timestamp of the first day. */
  day: string
  requests: number
  bytesIn: number
  bytesOut: number
  peakTunnels: number
}

type UsageDay = { day: string } & Record<Exclude<keyof ChartPoint, 'day'>, number | bigint>

export const byDay = (series: readonly UsageDay[]): ChartPoint[] => series.map(toPoint)

/** Weeks start on Monday (UTC). The first and the last may be partial. */
export function byWeek(series: readonly UsageDay[]): ChartPoint[] {
  const weeks = new Map<string, ChartPoint>()
  for (const entry of series.map(toPoint)) {
    const monday = findMonday(entry.day)
    const week = weeks.get(monday)
    weeks.set(monday, week ? merge(week, entry) : { ...entry, day: monday })
  }
  return [...weeks.values()]
}

const toPoint = ({ day, requests, bytesIn, bytesOut, peakTunnels }: UsageDay): ChartPoint => ({
  day,
  requests: Number(requests),
  bytesIn: Number(bytesIn),
  bytesOut: Number(bytesOut),
  peakTunnels: Number(peakTunnels),
})

function findMonday(day: string): string {
  const date = new Date(day)
  const daysSinceMonday = (date.getUTCDay() + 6) % 7
  return new Date(date.getTime() - daysSinceMonday * DAY_MS).toISOString()
}

/** Totals add up; the peak of a week is the highest of its days. */
const merge = (week: ChartPoint, entry: ChartPoint): ChartPoint => ({
  day: week.day,
  requests: week.requests + entry.requests,
  bytesIn: week.bytesIn + entry.bytesIn,
  bytesOut: week.bytesOut + entry.bytesOut,
  peakTunnels: Math.max(week.peakTunnels, entry.peakTunnels),
})
