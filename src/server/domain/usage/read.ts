// Reads usage. Computes the numbers of both API variants and the dashboard; the response schema selects.

import { USAGE_DAYS } from '../../../contract/limits.ts'
import { runOnShard } from '../../store/engine/postgres/usage-shards.ts'
import { type DayUsage, readUsage as readStored } from '../../store/usage/commit.ts'
import type { Context } from '../context.ts'
import { dayToIso, lastDays } from '../date-range.ts'
import { isoOrNull } from '../timestamps.ts'

const noUsage: Omit<DayUsage, 'day'> = { requests: 0n, bytesIn: 0n, bytesOut: 0n, events: 0n, peakTunnels: 0 }

export async function readUsage(ctx: Context, days: number = USAGE_DAYS.default) {
  const window = lastDays(days, ctx.clock())
  const { db, usageShards } = ctx.store
  const stored = await runOnShard(usageShards, ctx.workspaceId, () =>
    readStored(db, ctx.workspaceId, window[0] as number, window.at(-1) as number),
  )
  const byDay = new Map(stored.days.map((row) => [row.day, row]))
  const total = { ...noUsage }
  const series = window.map((day) => {
    const { requests, bytesIn, bytesOut, events, peakTunnels } = byDay.get(day) ?? noUsage
    total.requests += requests
    total.bytesIn += bytesIn
    total.bytesOut += bytesOut
    total.events += events
    total.peakTunnels = Math.max(total.peakTunnels, peakTunnels)
    const bytes = bytesIn + bytesOut
    return {
      day: dayToIso(day),
      requests,
      bytesIn,
      bytesOut,
      bytes,
      totalBytes: bytes,
      events,
      peakTunnels: BigInt(peakTunnels),
    }
  })
  return {
    requests: total.requests,
    bytesIn: total.bytesIn,
    bytesOut: total.bytesOut,
    totalBytes: total.bytesIn + total.bytesOut,
    peakTunnels: BigInt(total.peakTunnels),
    eventCount: total.events,
    events: total.events,
    lastSeen: isoOrNull(stored.lastSeen),
    series,
  }
}
