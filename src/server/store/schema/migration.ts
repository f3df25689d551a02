// A migration is a list of statements for both engines, with a few keywords that differ.

export interface EngineSql {
  int64: string
  /** Table options. */
  strict: string
  /** Table options of a table stored in primary key order, where the engine supports that. */
  clustered: string
  /**
   * Further options of a table whose rows are all updated every few seconds: half of each page stays free for
   * the new versions of its rows. An update that finds room on its page changes no index (HOT).
   */
  halfFull: string
}

export type Migration = (sql: EngineSql) => string[]
