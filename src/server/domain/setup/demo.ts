// Generates demo usage: traffic that grows over the year, with quiet weekends and occasional bursts. Days
// that are closed for reports get a total only, because the server deletes their counters.

import { DAY_MS, MINUTE_MS, startOfDay } from '../../../lib/time.ts'
import { insertDays } from '../../store/usage/rows.ts'
import { lockWorkspace } from '../../store/workspaces.ts'
import { requireNotArchived } from '../actors.ts'
import { writeAudit } from '../audit/entries.ts'
import type { Actor, Services } from '../context.ts'
import { lastDays } from '../date-range.ts'
import { DAYS_BACK_MAX } from '../usage/reports.ts'

const DAYS_PER_REPORT = 30

/** Not the id of a real edge. The fixed id makes filling idempotent. */
const DEMO_EDGE = 'edge_demo'
const DEMO_EPOCH = 'demo'

/** Writes the audit entry, before any usage. */
export const recordDemo = (services: Services, actor: Actor, workspaceId: string, days: number) =>
  services.store.transaction(async (db) => {
    requireNotArchived(await lockWorkspace(db, workspaceId), actor)
    await writeAudit(db, services, {
      workspaceId,
      actor,
      action: 'usage.demo-added',
      target: { id: workspaceId, name: `the last ${days} days` },
    })
  })

export async function fillWithUsage(
  services: Services,
  workspaceId: string,
  days: number,
  onProgress: (daysDone: number) => void,
): Promise<void> {
  const now = services.clock()
  const window = lastDays(days, now)
  const isDistributed = await services.store.usageShards.isDistributed()
  for (let start = 0; start < window.length; start += DAYS_PER_REPORT) {
    const part = window.slice(start, start + DAYS_PER_REPORT)
    const demoDays = part.map((day) => generateDay(day, (start + part.indexOf(day)) / window.length, now))
    const isOpen = ({ day }: { day: number }) => day >= startOfDay(now) - DAYS_BACK_MAX * DAY_MS
    await services.commitUsage(createReport(workspaceId, demoDays.filter(isOpen)))
    const closed = demoDays.filter((day) => !isOpen(day))
    await services.store.transaction((db) =>
      insertDays(
        { db, isDistributed },
        closed.map(({ open, ...totals }) => ({ workspaceId, ...totals, peakTunnels: open })),
      ),
    )
    onProgress(start + part.length)
  }
}

type DemoDay = ReturnType<typeof generateDay>

const createReport = (workspaceId: string, days: readonly DemoDay[]) => ({
  edgeId: DEMO_EDGE,
  epoch: DEMO_EPOCH,
  counters: days.map(({ open: _open, busiest: _busiest, ...counter }) => ({ workspaceId, ...counter })),
  tunnels: days.map(({ busiest, open }) => ({ workspaceId, minute: busiest, open })),
})

function generateDay(day: number, progress: number, now: number) {
  const random = seededRandom(day / DAY_MS)
  const weekday = new Date(day).getUTCDay()
  const weekendFactor = weekday === 0 || weekday === 6 ? 0.35 : 1
  const burst = random() < 0.04 ? 2.5 : 1
  const elapsed = Math.min(1, (now - day) / DAY_MS)
  const busy = (0.4 + 0.6 * progress) * weekendFactor * burst * (0.75 + 0.5 * random()) * elapsed
  const requests = Math.round(48_000 * busy)
  const bytesIn = Math.round(requests * (900 + 600 * random()))
  const bytesOut = Math.round(requests * (14_000 + 9_000 * random()))
  const lastMoment = Math.min(day + DAY_MS - 1, now)
  return {
    day,
    requests: BigInt(requests),
    bytesIn: BigInt(bytesIn),
    bytesOut: BigInt(bytesOut),
    events: BigInt(Math.round(40 * busy) * 2),
    lastSeen: lastMoment,
    busiest: lastMoment - (lastMoment % MINUTE_MS),
    open: Math.max(1, Math.round(14 * busy)),
  }
}

/** mulberry32, seeded with the day, so that filling again changes only today. */
function seededRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
