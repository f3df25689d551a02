import type { Migration } from '../migration.ts'

/**
 * The change log, in commit order, and the nodes that follow it. Its sequence comes from one row that is
 * locked until the commit: with a database sequence, numbers could become visible out of order, and readers
 * would miss entries.
 *
 * An entry has a checksum, and that of the previous entry: after a failover that lost the latest entries, or
 * a restore, sequence numbers are reused, and the number alone would be ambiguous.
 */
export const changes: Migration = ({ int64, strict }) => [
  `create table change_log_head (
     id integer primary key,
     sequence ${int64} not null,
     checksum text not null
   )${strict}`,
  `insert into change_log_head (id, sequence, checksum) values (1, 0, '')`,

  `create table change_log (
     sequence ${int64} primary key,
     checksum text not null,
     previous_checksum text not null,
     kind text not null,
     subject_id text not null,
     hash text not null,
     expires_at ${int64},
     at ${int64} not null
   )${strict}`,

  // `heartbeat_at` is informational.
  `create table nodes (
     id text primary key,
     host text not null,
     pid integer not null,
     version text not null,
     lease_ms integer not null,
     acknowledged_sequence ${int64} not null,
     acknowledged_checksum text not null,
     started_at ${int64} not null,
     heartbeat_at ${int64} not null
   )${strict}`,
]
