// What an engine's file opens.
import type { Dialect } from 'kysely'

/** How to read and how to write. */
export interface Ends {
  reader: Dialect
  writer: Dialect
}

export interface Engine {
  main: Ends
  /** For what must get through, or fail soon, whatever requests are waiting. */
  line: Ends
  /** The statement that tells other processes that there is something new, if there is one. */
  ring?: string
  /** See `Store`. */
  stamp?: () => number | undefined
  /** Closes what Kysely does not: it ends only drivers that were used. */
  close?: () => void
}
