import type { Migration } from '../migration.ts'

export const audit: Migration = ({ int64, strict }) => [
  // The names are those at the time of the action: users may be removed or renamed later.
  `create table audit_log (
     id text primary key,
     workspace_id text references workspaces (id),
     at ${int64} not null,
     actor_kind text not null,
     actor_id text not null,
     actor_name text,
     address text,
     action text not null,
     target_id text not null,
     target_name text,
     detail text,
     changes text,
     count ${int64},
     position ${int64}
   )${strict}`,
  'create index audit_log_by_workspace on audit_log (workspace_id, id)',
  'create index audit_log_by_position on audit_log (position, id)',
  'create index audit_log_by_actor on audit_log (workspace_id, actor_id, id)',
  'create index audit_log_by_action on audit_log (workspace_id, action, id)',
  'create index audit_log_by_target on audit_log (workspace_id, target_id, id)',

  `create table audit_export (
     id integer primary key,
     position ${int64} not null,
     deleted_position ${int64} not null
   )${strict}`,
  'insert into audit_export (id, position, deleted_position) values (1, 0, 0)',
]
