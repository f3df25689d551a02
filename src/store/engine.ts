// The interface that both database engines implement.
import type { Dialect } from 'kysely'

/**
 * The Kysely dialects of one connection: the same one twice on PostgreSQL, two SQLite connections otherwise.
 */
export interface Dialects {
  reader: Dialect
  writer: Dialect
}

export interface Engine {
  main: Dialects
  /** See `Store.controlConnection`. */
  control: Dialects
  /** Statement that wakes the other processes, where the engine has one. */
  notifyStatement?: string
  /** See `Store.dataVersion`. */
  dataVersion?: () => number | undefined
  /** Closes what Kysely does not: it destroys only drivers that were used. */
  close?: () => void
}
