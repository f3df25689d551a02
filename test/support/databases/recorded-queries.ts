// Records what reaches the database drivers.
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { atEnd, type Test } from '../cleanup.ts'

export interface Recorded {
  text: string
  values: unknown[]
  /** PostgreSQL plans it without knowing the values. */
  isPrepared?: boolean
}

/** On SQLite a statement is recorded when it is prepared, and prepared statements are cached. */
export function recordQueries(t: Test): Recorded[] {
  const recorded: Recorded[] = []
  const { query } = pg.Client.prototype
  const { prepare } = DatabaseSync.prototype
  pg.Client.prototype.query = function (this: pg.Client, ...args: [unknown, unknown]) {
    const [text, values] = args
    if (typeof text === 'string') recorded.push({ text, values: Array.isArray(values) ? values : [] })
    else recorded.push({ ...(text as Recorded), isPrepared: true })
    return Reflect.apply(query, this, args)
  } as never
  DatabaseSync.prototype.prepare = function (text: string) {
    recorded.push({ text, values: [] })
    return prepare.call(this, text)
  }
  atEnd(t, () => {
    pg.Client.prototype.query = query
    DatabaseSync.prototype.prepare = prepare
  })
  return recorded
}
