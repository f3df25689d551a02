// Cache of the counters that edges are reporting, on SQLite: the values and row ids. With it a usual report
// reads nothing and searches no index, which is most of the work of a merge.
//
// The cache always equals the database: all writes of the process go through one connection, whose driver
// clears the cache when a transaction is rolled back and when usage is deleted. A commit by another process
// changes `data_version`.
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { StorageHealth } from '../storage-fault.ts'
import { exceeds } from '../usage-limits.ts'
import type { Amounts, Counter, ParsedReport } from '../usage-report.ts'
import { type RowChange, UsageUpdates } from './usage-updates.ts'

/** Maximum of counters and days, about 8 MB. The edge and day that was least recently reported is evicted. */
const CACHED_MAX = 50_000

/** A row of `usage_counters`. */
interface CachedCounter extends RowChange {
  /** Id of the row in `usage_days` with the total. */
  dayRowId: number
}

/** Counters of one edge, epoch and day, by workspace. */
type CachedDay = Map<string, CachedCounter>

/** Larger values are neither cached nor merged here, because numbers would not be exact. */
const EXACT_MAX = Number.MAX_SAFE_INTEGER

const READ = `
  select c.rowid, d.rowid, c.requests, c.bytes_in, c.bytes_out, c.events, coalesce(c.last_seen, 0)
  from usage_counters as c cross join usage_days as d
  where c.workspace_id = ? and c.day = ? and c.edge_id = ? and c.epoch = ?
    and max(c.requests, c.bytes_in, c.bytes_out, c.events) <= ${EXACT_MAX}
    and d.workspace_id = c.workspace_id and d.day = c.day`

/** The columns of `READ`. */
type StoredRow = [number, number, number, number, number, number, number]

interface Statements {
  dataVersion: StatementSync
  read: StatementSync
  updates: UsageUpdates
}

export class CounterCache {
  readonly #database: DatabaseSync
  readonly #health: StorageHealth
  /** In the order of reports, least recent first. */
  readonly #days = new Map<string, CachedDay>()
  #size = 0
  #dataVersion: unknown
  #prepared: Statements | undefined

  constructor(database: DatabaseSync, health: StorageHealth) {
    this.#database = database
    this.#health = health
  }

  /** Counters and days. */
  get size(): number {
    return this.#size
  }

  clear(): void {
    this.#days.clear()
    this.#size = 0
    this.#prepared?.updates.discard()
  }

  /**
   * Merges the counters that have a row and do not exceed `max`, in the transaction of the connection.
   * Returns the reports with the other counters, which have to be merged without the cache.
   */
  merge(reports: readonly ParsedReport[], max: Amounts): ParsedReport[] {
    try {
      this.#prepared ??= prepare(this.#database)
      const [dataVersion] = this.#prepared.dataVersion.get() as unknown as [number]
      if (dataVersion !== this.#dataVersion) this.clear()
      this.#dataVersion = dataVersion
      const exactMax = exactMaximum(max)
      const { updates } = this.#prepared
      const rest = reports.map((report) => ({ ...report, counters: this.#mergeReport(report, exactMax) }))
      updates.flush()
      for (const report of rest) this.#evictCounters(report)
      this.#evictDays()
      return rest
    } catch (error) {
      throw this.#health.record(error)
    }
  }

  /** Returns the counters that were not merged. */
  #mergeReport(report: ParsedReport, max: Amounts): Counter[] {
    const rest: Counter[] = []
    let day: number | undefined
    let cachedDay: CachedDay = new Map()
    for (const counter of report.counters) {
      // Most counters of a report are of the same day.
      if (counter.day !== day) cachedDay = this.#getDay(report, counter.day)
      day = counter.day
      const cached = exceeds(counter, max)
        ? undefined
        : (cachedDay.get(counter.workspaceId) ?? this.#read(report, counter, cachedDay))
      if (cached) this.#mergeCounter(cached, counter)
      else rest.push(counter)
    }
    return rest
  }

  #mergeCounter(cached: CachedCounter, { requests, bytesIn, bytesOut, events, lastSeen }: Counter): void {
    const added = {
      rowId: cached.dayRowId,
      requests: Math.max(0, Number(requests) - cached.requests),
      bytesIn: Math.max(0, Number(bytesIn) - cached.bytesIn),
      bytesOut: Math.max(0, Number(bytesOut) - cached.bytesOut),
      events: Math.max(0, Number(events) - cached.events),
      lastSeen: Math.max(lastSeen ?? 0, cached.lastSeen),
    }
    const isLater = added.lastSeen > cached.lastSeen
    if (!isLater && added.requests + added.bytesIn + added.bytesOut + added.events === 0) return
    cached.requests += added.requests
    cached.bytesIn += added.bytesIn
    cached.bytesOut += added.bytesOut
    cached.events += added.events
    cached.lastSeen = added.lastSeen
    this.#prepared?.updates.change(cached, added)
  }

  #getDay({ edgeId, epoch }: ParsedReport, day: number): CachedDay {
    const key = `${edgeId} ${epoch} ${day}`
    const known = this.#days.get(key)
    const cachedDay: CachedDay = known ?? new Map()
    if (known) this.#days.delete(key)
    else this.#size += 1
    this.#days.set(key, cachedDay)
    return cachedDay
  }

  /** Undefined if the row does not exist. */
  #read({ edgeId, epoch }: ParsedReport, { workspaceId, day }: Counter, cachedDay: CachedDay) {
    const row = this.#prepared?.read.get(workspaceId, day, edgeId, epoch) as unknown as StoredRow | undefined
    if (!row) return undefined
    const [rowId, dayRowId, requests, bytesIn, bytesOut, events, lastSeen] = row
    const cached = { rowId, dayRowId, requests, bytesIn, bytesOut, events, lastSeen }
    cachedDay.set(workspaceId, cached)
    this.#size += 1
    return cached
  }

  #evictCounters(report: ParsedReport): void {
    for (const { day, workspaceId } of report.counters)
      if (this.#getDay(report, day).delete(workspaceId)) this.#size -= 1
  }

  #evictDays(): void {
    for (const [key, cachedDay] of this.#days) {
      if (this.#size <= CACHED_MAX) return
      this.#days.delete(key)
      this.#size -= 1 + cachedDay.size
    }
  }
}

function prepare(database: DatabaseSync): Statements {
  const asArrays = (text: string) => {
    const statement = database.prepare(text)
    statement.setReturnArrays(true)
    return statement
  }
  return {
    dataVersion: asArrays('pragma data_version'),
    read: asArrays(READ),
    updates: new UsageUpdates(database),
  }
}

const exactMaximum = ({ requests, bytesIn, bytesOut, events }: Amounts): Amounts => ({
  requests: Math.min(Number(requests), EXACT_MAX),
  bytesIn: Math.min(Number(bytesIn), EXACT_MAX),
  bytesOut: Math.min(Number(bytesOut), EXACT_MAX),
  events: Math.min(Number(events), EXACT_MAX),
})
