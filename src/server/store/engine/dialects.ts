// The interface that both database engines implement.
import type { CompiledQuery, Dialect } from 'kysely'
import type { PoolUse } from './postgres/replaceable-pool.ts'
import type { CounterCache } from './sqlite/counter-cache.ts'

/**
 * The Kysely dialects of one connection: the same one twice on PostgreSQL, two SQLite connections otherwise.
 */
export interface Dialects {
  reader: Dialect
  writer: Dialect
  /** Runs each transaction, if the engine limits them. */
  runTransaction?: <T>(work: () => Promise<T>) => Promise<T>
}

export interface Engine {
  main: Dialects
  /** See `Store.controlConnection`. */
  control: Dialects
  /** The query that sends a notification, where the engine has one. */
  notification?: (payload: string) => CompiledQuery
  /** See `Store.poolUse`. */
  poolUse?: () => PoolUse
  /** See `Store.confirmCommit`. */
  confirmCommit?: () => Promise<void>
  /** See `Store.areCommitsBlocked`. */
  areCommitsBlocked?: () => boolean
  /** See `Store.dataVersion`. */
  dataVersion?: () => number | undefined
  /** See `Store.counterCache`. */
  counterCache?: CounterCache
  /** Closes what Kysely does not: it destroys only drivers that were used. */
  close?: () => void
}
