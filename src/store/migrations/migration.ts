// A migration is a list of statements that both engines take, with the few words in which they differ exchanged.

export interface Words {
  int64: string
  /** Ends a table whose rows are found by a key of their own. */
  strict: string
  /** Ends a table whose rows lie in the order of their primary key, where the engine has such. */
  clustered: string
}

export type Migration = (words: Words) => string[]
