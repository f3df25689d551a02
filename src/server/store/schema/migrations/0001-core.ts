import type { Migration } from './migration.ts'

export const core: Migration = ({ int64, clustered, strict }) => [
  `create table workspaces (
     id text primary key,
     slug text not null unique,
     name text not null,
     created_at ${int64} not null,
     provisioned_at ${int64}
   )${strict}`,

  `create table api_keys (
     id text primary key,
     workspace_id text not null references workspaces (id),
     label text not null,
     hash text not null unique,
     created_at ${int64} not null,
     last_used_at ${int64},
     revoked_at ${int64}
   )${strict}`,
  'create index api_keys_by_workspace on api_keys (workspace_id, id)',

  `create table edges (
     id text primary key,
     name text not null,
     hash text not null unique,
     created_at ${int64} not null,
     revoked_at ${int64}
   )${strict}`,

  `create table audit_log (
     id text primary key,
     workspace_id text references workspaces (id),
     at ${int64} not null,
     actor_kind text not null,
     actor_id text not null,
     action text not null,
     subject_id text not null
   )${strict}`,
  'create index audit_log_by_workspace on audit_log (workspace_id, id)',

  `create table idempotent_answers (
     workspace_id text not null references workspaces (id),
     id text not null,
     sealed text not null,
     created_at ${int64} not null,
     primary key (workspace_id, id)
   )${strict}`,
  'create index idempotent_answers_by_age on idempotent_answers (workspace_id, created_at)',

  // The primary keys of the usage tables start with the workspace, so that they can be distributed by it.
  // They have no foreign keys, so that merging a report reads no other table.
  `create table usage_counters (
     workspace_id text not null,
     day ${int64} not null,
     edge_id text not null,
     epoch text not null,
     requests ${int64} not null,
     bytes_in ${int64} not null,
     bytes_out ${int64} not null,
     events ${int64} not null,
     last_seen ${int64},
     primary key (workspace_id, day, edge_id, epoch)
   )${clustered}`,

  `create table usage_minutes (
     workspace_id text not null,
     minute ${int64} not null,
     edge_id text not null,
     open ${int64} not null,
     primary key (workspace_id, minute, edge_id)
   )${clustered}`,

  `create table usage_days (
     workspace_id text not null,
     day ${int64} not null,
     requests ${int64} not null default 0,
     bytes_in ${int64} not null default 0,
     bytes_out ${int64} not null default 0,
     events ${int64} not null default 0,
     peak_tunnels ${int64} not null default 0,
     last_seen ${int64},
     primary key (workspace_id, day)
   )${clustered}`,
]
