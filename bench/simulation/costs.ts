// The costs that the simulation uses, measured by merging reports on a real PostgreSQL: CPU time, which other
// programs on the machine hardly influence.
import { readFileSync } from 'node:fs'
import { deleteExpired } from '../../src/store/retention.ts'
import type { Store } from '../../src/store/store.ts'
import { mergeReports } from '../../src/store/usage.ts'
import type { ParsedReport } from '../../src/store/usage-report.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, startOfDay } from '../../src/time.ts'
import { withClient } from '../seed/postgres.ts'

export interface Costs {
  /** A transaction, without its rows. */
  transactionMs: number
  /** A counter whose row exists, and one that is the first of its day. */
  counterMs: number
  newCounterMs: number
  /** A row of open tunnels: the edge's and the share of the total's. */
  hourMs: number
  newHourMs: number
  /** Each minute in it. */
  minuteMs: number
  /** For a counter: CPU time of PostgreSQL and of the node, and write-ahead log. */
  databaseCpuMs: number
  nodeCpuMs: number
  walBytes: number
  deletedRowMs: number
}

/** In one report: large, so that the cost of a row is not hidden by that of the transaction. */
const LARGE = 2_000
const SMALL = 20
const ROUNDS = 12
const EDGES = 3

export async function measureCosts(
  store: Store,
  url: string,
  progress: (text: string) => void,
): Promise<Costs> {
  const today = startOfDay(Date.now())
  let sent = 0
  /** A report of an edge whose every item has changed. */
  const report = (items: {
    counters?: number
    minutes?: number[]
    rows?: number
    day?: number
  }): ParsedReport => {
    sent += 1
    const { counters = 0, minutes = [], rows = 0, day = today } = items
    const ids = (count: number) =>
      Array.from({ length: count }, (_, index) => `ws_${String(index).padStart(26, '0')}`)
    const value = BigInt(sent)
    const totals = { requests: value, bytesIn: value, bytesOut: value, events: value, lastSeen: day }
    return {
      edgeId: `edge_${String(sent % EDGES).padStart(26, '0')}`,
      epoch: '9b2e1d0c-4a53-4c7e-8d0f-6f6b7a1c2d3e',
      counters: ids(counters).map((workspaceId) => ({ workspaceId, day, ...totals })),
      tunnels: ids(rows).flatMap((workspaceId) =>
        minutes.map((minute) => ({
          workspaceId,
          minute: day + minute * MINUTE_MS,
          open: 1 + (sent % 9) + sent,
        })),
      ),
    }
  }
  const rounds = async (name: string, given: (round: number) => ParsedReport): Promise<Spent> => {
    progress(name)
    for (let round = 0; round < EDGES; round++) await mergeReports(store, [given(-1 - round)])
    const reports = Array.from({ length: ROUNDS }, (_, round) => given(round))
    const before = await readSpent(url)
    const wallMs: number[] = []
    for (const one of reports) {
      const start = performance.now()
      await mergeReports(store, [one])
      wallMs.push(performance.now() - start)
    }
    const after = await readSpent(url)
    const difference = (key: keyof Spent) => (after[key] - before[key]) / ROUNDS
    return {
      databaseMs: difference('databaseMs'),
      nodeMs: difference('nodeMs'),
      walBytes: difference('walBytes'),
      wallMs: Math.min(...wallMs),
    }
  }
  const small = await rounds('small reports', () => report({ counters: SMALL }))
  const large = await rounds('large reports', () => report({ counters: LARGE }))
  const counterMs = cpuOf(large) / LARGE
  const added = await rounds('counters of a new day', (round) =>
    report({ counters: LARGE, day: today - (10 + round) * DAY_MS }),
  )
  const oneMinute = await rounds('open tunnels', () => report({ rows: LARGE, minutes: [sent % 60] }))
  const fiveMinutes = await rounds('open tunnels of five minutes', () =>
    report({ rows: LARGE, minutes: [0, 1, 2, 3, 4].map((minute) => (minute + sent) % 60) }),
  )
  const minuteMs = Math.max(0, (cpuOf(fiveMinutes) - cpuOf(oneMinute)) / (4 * LARGE))
  const newHours = await rounds('open tunnels of a new hour', (round) =>
    report({ rows: LARGE, minutes: [0], day: today - (30 + round) * DAY_MS + HOUR_MS }),
  )
  return {
    transactionMs: Math.max(0, small.wallMs - SMALL * counterMs),
    counterMs,
    newCounterMs: cpuOf(added) / LARGE,
    hourMs: cpuOf(oneMinute) / LARGE - minuteMs,
    newHourMs: cpuOf(newHours) / LARGE - minuteMs,
    minuteMs,
    databaseCpuMs: large.databaseMs / LARGE,
    nodeCpuMs: large.nodeMs / LARGE,
    walBytes: Math.round(large.walBytes / LARGE),
    deletedRowMs: await measureDeletion(store, today),
  }
}

/** For one report. */
interface Spent {
  /** CPU time of PostgreSQL; 0 where it is not known. */
  databaseMs: number
  nodeMs: number
  walBytes: number
  /** The fastest report: other programs make some slower, and none faster. */
  wallMs: number
}

/** A merge is one sequence of steps in the node and in the database, so its time is the sum of both. */
const cpuOf = ({ databaseMs, nodeMs, wallMs }: Spent) => (databaseMs > 0 ? databaseMs + nodeMs : wallMs)

/** Since the start of the processes. */
const readSpent = (url: string): Promise<Spent> =>
  withClient(url, async (client) => {
    const { rows } = await client.query(
      `select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') as bytes, array_agg(pid) as pids
       from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
    )
    const { user, system } = process.cpuUsage()
    return {
      databaseMs: cpuMsOf(rows[0].pids as number[]),
      nodeMs: (user + system) / 1000,
      walBytes: Number(rows[0].bytes),
      wallMs: 0,
    }
  })

/** From Linux; elsewhere 0. */
function cpuMsOf(pids: readonly number[]): number {
  const TICK_MS = 10
  try {
    return pids.reduce((sum, pid) => {
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
      return sum + (Number(fields[11]) + Number(fields[12])) * TICK_MS
    }, 0)
  } catch {
    return 0
  }
}

async function measureDeletion(store: Store, today: number): Promise<number> {
  const taken: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const start = performance.now()
    const rows = await store.transaction((db) => deleteExpired(db, 'usage_hours', today, 500))
    if (rows > 0) taken.push((performance.now() - start) / rows)
  }
  return Math.min(...taken)
}
