// Bytes of a row in the usage tables with its indexes, after reports have written it many times.
import { sql } from 'kysely'
import type { Store } from '../../src/store/store.ts'
import { mergeReports } from '../../src/store/usage.ts'
import type { ParsedReport } from '../../src/store/usage-report.ts'
import { DAY_MS, MINUTE_MS, startOfDay } from '../../src/time.ts'
import { withClient } from '../seed/postgres.ts'

export interface Storage {
  counterBytes: number
  dayBytes: number
  /** The number of open tunnels does not change, or changes every minute. */
  steadyHourBytes: number
  busyHourBytes: number
}

const EDGES = 2
const WORKSPACES = 800
const DAYS = 8
const REPORTS_PER_DAY = 6
const HOUR_WORKSPACES = 100
const HOURS = 8
const MINUTES = 60
/** Autovacuum's part: time passes faster here than it can follow. */
const VACUUM_EVERY_ITEMS = 4_000

const id = (kind: string, number: number) => `${kind}_${String(number).padStart(26, '0')}`
const epoch = '9b2e1d0c-4a53-4c7e-8d0f-6f6b7a1c2d3e'

/** Several days and hours, one after the other: new rows use the space of old versions of earlier ones. */
export async function measureStorage(
  store: Store,
  url: string,
  progress: (text: string) => void,
): Promise<Storage> {
  const today = startOfDay(Date.now())
  let items = 0
  const onTables = (verb: string) =>
    withClient(url, (client) => client.query(`${verb} usage_counters, usage_days, usage_hours`))
  const merge = async (content: (workspaceId: string) => Partial<ParsedReport>, workspaces: number) => {
    const parts = Array.from({ length: workspaces }, (_, index) => content(id('ws', index)))
    const counters = parts.flatMap((part) => part.counters ?? [])
    const tunnels = parts.flatMap((part) => part.tunnels ?? [])
    const edges = Array.from({ length: EDGES }, (_, edge) => id('edge', edge))
    await mergeReports(
      store,
      edges.map((edgeId) => ({ edgeId, epoch, counters, tunnels })),
    )
    items += EDGES * (counters.length + tunnels.length)
    if (items < VACUUM_EVERY_ITEMS) return
    items = 0
    await onTables('vacuum')
  }

  progress('bytes of counters and days')
  await onTables('truncate')
  for (let number = 0; number < DAYS * REPORTS_PER_DAY; number++) {
    const day = today + (Math.floor(number / REPORTS_PER_DAY) - DAYS) * DAY_MS
    const value = BigInt(number + 1) * 1_000_003n
    const figures = {
      requests: value,
      bytesIn: value,
      bytesOut: value,
      events: value,
      lastSeen: day + number,
    }
    await merge((workspaceId) => ({ counters: [{ workspaceId, day, ...figures }] }), WORKSPACES)
  }
  const counterBytes = await bytesPerRow(store, 'usage_counters')
  const dayBytes = await bytesPerRow(store, 'usage_days')

  async function hourBytes(openAt: (minute: number) => number): Promise<number> {
    await onTables('truncate')
    for (let number = 0; number < HOURS * MINUTES; number++) {
      const tunnel = { minute: today + number * MINUTE_MS, open: openAt(number) }
      await merge((workspaceId) => ({ tunnels: [{ workspaceId, ...tunnel }] }), HOUR_WORKSPACES)
    }
    return bytesPerRow(store, 'usage_hours')
  }
  progress('bytes of hours')
  const steadyHourBytes = await hourBytes(() => 3)
  const busyHourBytes = await hourBytes((minute) => 10 + ((minute * 7) % 20))
  return { counterBytes, dayBytes, steadyHourBytes, busyHourBytes }
}

async function bytesPerRow(store: Store, table: string): Promise<number> {
  const { rows } = await sql<{ bytes: number }>`
    select pg_total_relation_size(cast(${table} as regclass)) / count(*) as bytes
    from ${sql.table(table)}`.execute(store.db)
  return Number(rows[0]?.bytes)
}
