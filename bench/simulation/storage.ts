// Bytes of a row in the usage tables with its indexes, after reports have written it many times.
import { sql } from 'kysely'
import type { Store } from '../../src/store/store.ts'
import { mergeReports } from '../../src/store/usage.ts'
import { HOUR_MS, MINUTE_MS, startOfDay } from '../../src/time.ts'
import { withClient } from '../seed/postgres.ts'

export interface Storage {
  counterBytes: number
  dayBytes: number
  /** The number of open tunnels does not change, or changes every minute. */
  steadyHourBytes: number
  busyHourBytes: number
}

const WORKSPACES = 2_000
const HOUR_WORKSPACES = 400
const EDGES = 2
const REPORTS = 12
const MINUTES = 60
/** Autovacuum's part: time passes faster here than it can follow. */
const VACUUM_EVERY = 6

const id = (kind: string, number: number) => `${kind}_${String(number).padStart(26, '0')}`
const epoch = '9b2e1d0c-4a53-4c7e-8d0f-6f6b7a1c2d3e'

export async function measureStorage(
  store: Store,
  url: string,
  progress: (text: string) => void,
): Promise<Storage> {
  const day = startOfDay(Date.now())
  const vacuum = () =>
    withClient(url, (client) => client.query('vacuum usage_counters, usage_days, usage_hours'))
  const empty = () =>
    withClient(url, (client) => client.query('truncate usage_counters, usage_days, usage_hours'))

  async function report(
    number: number,
    counters: number,
    tunnels: { minute: number; open: number }[],
    rows: number,
  ) {
    const value = BigInt(number) * 1_000_003n
    const figures = {
      requests: value,
      bytesIn: value,
      bytesOut: value,
      events: value,
      lastSeen: day + number,
    }
    const workspaces = (count: number) => Array.from({ length: count }, (_, index) => id('ws', index))
    await mergeReports(
      store,
      Array.from({ length: EDGES }, (_, edge) => ({
        edgeId: id('edge', edge),
        epoch,
        counters: workspaces(counters).map((workspaceId) => ({ workspaceId, day, ...figures })),
        tunnels: workspaces(rows).flatMap((workspaceId) =>
          tunnels.map((tunnel) => ({ workspaceId, ...tunnel })),
        ),
      })),
    )
    if (number % VACUUM_EVERY === 0) await vacuum()
  }

  progress('bytes of counters and days')
  await empty()
  for (let number = 1; number <= REPORTS; number++) await report(number, WORKSPACES, [], 0)
  const counterBytes = await bytesPerRow(store, 'usage_counters')
  const dayBytes = await bytesPerRow(store, 'usage_days')

  async function hourBytes(openAt: (minute: number) => number): Promise<number> {
    await empty()
    for (let minute = 0; minute < MINUTES; minute++)
      await report(
        minute,
        0,
        [{ minute: day + HOUR_MS + minute * MINUTE_MS, open: openAt(minute) }],
        HOUR_WORKSPACES,
      )
    await vacuum()
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
