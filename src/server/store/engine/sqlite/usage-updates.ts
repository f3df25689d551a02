// Updates usage rows by row id, on SQLite. The statements run directly in the transaction of the connection,
// because the query builder would take longer than the database.
import type { DatabaseSync, StatementSync } from 'node:sqlite'

/** Rows of a statement; more are not faster. If fewer are left, they are updated one by one. */
const BATCH_ROWS = 50
/** Values of a row: its id, four sums and the last time. */
const WIDTH = 6

const replaceCounters = (input: string) => `
  update usage_counters
  set requests = column2, bytes_in = column3, bytes_out = column4, events = column5,
    last_seen = nullif(column6, 0)
  from (${input}) where usage_counters.rowid = column1`

/** Casts to integer: the driver binds numbers as floating point, and sums would be rounded. */
const addToDays = (input: string) => `
  update usage_days
  set requests = requests + cast(column2 as integer), bytes_in = bytes_in + cast(column3 as integer),
    bytes_out = bytes_out + cast(column4 as integer), events = events + cast(column5 as integer),
    last_seen = nullif(max(coalesce(last_seen, 0), column6), 0)
  from (${input}) where usage_days.rowid = column1`

/** Values to write to a row, or to add to it. A `lastSeen` of 0 means none. */
export interface RowChange {
  rowId: number
  requests: number
  bytesIn: number
  bytesOut: number
  events: number
  lastSeen: number
}

interface BatchStatements {
  one: StatementSync
  many: StatementSync
}

/** Collects changes, and writes them in batches. */
export class UsageUpdates {
  readonly #counters: BatchStatements
  readonly #days: BatchStatements
  #counterValues: number[] = []
  #dayValues: number[] = []
  /** Days in the current batch: a statement changes a row only once. */
  readonly #dayRowIds = new Set<number>()

  constructor(database: DatabaseSync) {
    this.#counters = prepareBatch(database, replaceCounters)
    this.#days = prepareBatch(database, addToDays)
  }

  /** Adds the new values of a counter, and what they add to its day. */
  change(counter: RowChange, day: RowChange): void {
    if (this.#dayRowIds.size === BATCH_ROWS || this.#dayRowIds.has(day.rowId)) this.flush()
    this.#dayRowIds.add(day.rowId)
    push(this.#counterValues, counter)
    push(this.#dayValues, day)
  }

  /** Throws if a row does not exist. */
  flush(): void {
    const [counters, days] = [this.#counterValues, this.#dayValues]
    this.discard()
    run(this.#counters, counters)
    run(this.#days, days)
  }

  discard(): void {
    this.#counterValues = []
    this.#dayValues = []
    this.#dayRowIds.clear()
  }
}

const push = (parameters: number[], { rowId, requests, bytesIn, bytesOut, events, lastSeen }: RowChange) =>
  parameters.push(rowId, requests, bytesIn, bytesOut, events, lastSeen)

function prepareBatch(database: DatabaseSync, statementOn: (input: string) => string): BatchStatements {
  const tuple = `(${Array(WIDTH).fill('?').join(', ')})`
  const prepare = (rows: number) =>
    database.prepare(statementOn(`values ${Array(rows).fill(tuple).join(', ')}`))
  return { one: prepare(1), many: prepare(BATCH_ROWS) }
}

function run({ one, many }: BatchStatements, parameters: readonly number[]): void {
  const isFull = parameters.length === BATCH_ROWS * WIDTH
  const [statement, rows] = isFull ? [many, BATCH_ROWS] : [one, 1]
  for (let start = 0; start < parameters.length; start += rows * WIDTH)
    if (statement.run(...parameters.slice(start, start + rows * WIDTH)).changes !== rows)
      throw new Error('A cached usage row does not exist.')
}
