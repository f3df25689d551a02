// Open tunnels by hour: the peaks of 60 minutes in one row. Pure functions; the statements are in rows.ts.
import { startOfDay } from '../../../lib/time.ts'
import { dayKey, type HourKey, hourKey, noUsage, type TunnelHour } from '../engine/usage-report.ts'
import { createDelta, type DayDelta } from './merge.ts'

const MINUTES = 60

/** Run-length encoding without trailing zeros: `0*10 3*2 4` is 3, 3 and 4 from minute 10 on. */
export function encodeHour(open: readonly number[]): string {
  const runs: string[] = []
  const length = open.findLastIndex((peak) => peak > 0) + 1
  for (let start = 0; start < length; ) {
    let end = start + 1
    while (end < length && open[end] === open[start]) end++
    runs.push(end - start === 1 ? `${open[start]}` : `${open[start]}*${end - start}`)
    start = end
  }
  return runs.join(' ')
}

export function decodeHour(text: string): number[] {
  const open: number[] = []
  if (text !== '')
    for (const run of text.split(' ')) {
      const star = run.indexOf('*')
      const peak = Number(star < 0 ? run : run.slice(0, star))
      for (let times = star < 0 ? 1 : Number(run.slice(star + 1)); times > 0; times--) open.push(peak)
    }
  while (open.length < MINUTES) open.push(0)
  return open
}

/** The row with the total of all edges. */
export const totalKey = ({ workspaceId, hour }: HourKey): HourKey => ({ workspaceId, hour, edgeId: '' })

interface MergedHours {
  /** Changed rows. */
  rows: TunnelHour[]
  /** The differences, which are added to the totals of all edges. */
  deltas: TunnelHour[]
}

/** Keeps the maximum of each minute, like counters. */
export function mergeHours(
  stored: ReadonlyMap<string, readonly number[]>,
  reported: readonly TunnelHour[],
): MergedHours {
  const rows: TunnelHour[] = []
  const deltas = new Map<string, TunnelHour>()
  for (const hour of reported) {
    const before = stored.get(hourKey(hour)) ?? []
    const added = hour.open.map((peak, minute) => Math.max(0, peak - (before[minute] ?? 0)))
    if (!added.some((peak) => peak > 0)) continue
    rows.push({ ...hour, open: added.map((peak, minute) => peak + (before[minute] ?? 0)) })
    const total = totalKey(hour)
    const delta = deltas.get(hourKey(total))
    deltas.set(hourKey(total), { ...total, open: delta ? sum(delta.open, added) : added })
  }
  return { rows, deltas: [...deltas.values()] }
}

/** Returns the new totals, and raises the peaks in `days`: only a changed minute can become the peak. */
export function addHours(
  stored: ReadonlyMap<string, readonly number[]>,
  deltas: readonly TunnelHour[],
  days: Map<string, DayDelta>,
): TunnelHour[] {
  return deltas.map((delta) => {
    const open = sum(delta.open, stored.get(hourKey(delta)) ?? [])
    const day = { workspaceId: delta.workspaceId, day: startOfDay(delta.hour) }
    const dayDelta = days.get(dayKey(day)) ?? createDelta(day, noUsage, null)
    const changed = open.filter((_, minute) => (delta.open[minute] as number) > 0)
    dayDelta.peakTunnels = Math.max(dayDelta.peakTunnels, ...changed)
    days.set(dayKey(day), dayDelta)
    return { ...delta, open }
  })
}

/** Subtracts hours of edges from the totals. */
export function subtractHours(totals: readonly TunnelHour[], hours: readonly TunnelHour[]): TunnelHour[] {
  return totals.map((total) => ({
    ...total,
    open: total.open.map((peak, minute) =>
      hours
        .filter(({ hour }) => hour === total.hour)
        .reduce((left, { open }) => left - (open[minute] as number), peak),
    ),
  }))
}

const sum = (a: readonly number[], b: readonly number[]) => a.map((peak, minute) => peak + (b[minute] ?? 0))
