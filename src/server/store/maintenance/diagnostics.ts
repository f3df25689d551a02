// Reads version, settings and clock of the database, for `adit admin doctor`.
import { sql } from 'kysely'
import { POOL_OPTIONS } from '../engine/postgres/connection.ts'
import type { Store } from '../engine/store.ts'

/** Connections of a node: its pool, the control connection and the probe of commits. */
export const CONNECTIONS_PER_NODE = POOL_OPTIONS.max + 2

/** Null if the server has no such setting: some databases only speak the protocol of PostgreSQL. */
export interface PostgresFacts {
  version: string
  versionNumber: number
  encoding: string | null
  fsync: string | null
  fullPageWrites: string | null
  autovacuum: string | null
  canCreateTables: boolean
  /** Milliseconds; 0 for none. */
  statementTimeout: number | null
  maxConnections: number | null
  reservedConnections: number | null
  usedConnections: number
}

export async function readPostgresFacts({ db }: Store): Promise<PostgresFacts> {
  const { rows } = await sql<PostgresFacts>`select
    current_setting('server_version') as "version",
    cast(current_setting('server_version_num') as integer) as "versionNumber",
    current_setting('server_encoding', true) as "encoding",
    current_setting('fsync', true) as "fsync",
    current_setting('full_page_writes', true) as "fullPageWrites",
    current_setting('autovacuum', true) as "autovacuum",
    coalesce(has_schema_privilege(current_schema(), 'create'), false) as "canCreateTables",
    (select cast(setting as integer) from pg_settings where name = 'statement_timeout')
      as "statementTimeout",
    cast(current_setting('max_connections', true) as integer) as "maxConnections",
    cast(current_setting('superuser_reserved_connections', true) as integer) as "reservedConnections",
    (select cast(count(*) as integer) from pg_stat_activity where backend_type = 'client backend')
      as "usedConnections"`.execute(db)
  return rows[0] as PostgresFacts
}

export interface Standbys {
  /** The setting synchronous_standby_names. */
  names: string
  connected: number
  synchronous: number
  /** Whether the user may see which standbys are synchronous. */
  isVisible: boolean
}

export async function readStandbys({ db }: Store): Promise<Standbys> {
  const { rows } = await sql<Standbys>`select
    current_setting('synchronous_standby_names') as "names",
    cast(count(*) as integer) as "connected",
    cast(count(*) filter (where sync_state in ('sync', 'quorum')) as integer) as "synchronous",
    count(*) = count(sync_state) as "isVisible"
    from pg_stat_replication`.execute(db)
  return rows[0] as Standbys
}

export async function readSqliteVersion({ db }: Store): Promise<string> {
  const { rows } = await sql<{ version: string }>`select sqlite_version() as version`.execute(db)
  return rows[0]?.version ?? ''
}
