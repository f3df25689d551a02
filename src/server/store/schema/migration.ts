// A migration is a list of statements for both engines, with a few keywords that differ.

export interface EngineSql {
  int64: string
  /** Table options. */
  strict: string
  /** Table options of a table stored in primary key order, where the engine supports that. */
  clustered: string
}

export type Migration = (sql: EngineSql) => string[]
