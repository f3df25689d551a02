import type { Migration } from './migration.ts'

/**
 * What an action has changed (JSON), and the position of an entry in exports (see store/audit/export.ts),
 * with the indexes of the dashboard's filters. `if not exists`: building an index blocks writes to its table,
 * so the operator of a large database may create it before, concurrently.
 */
export const auditExport: Migration = ({ int64, strict }) => [
  'alter table audit_log add column changes text',
  `alter table audit_log add column position ${int64}`,
  `create table audit_export (
     id integer primary key,
     position ${int64} not null,
     deleted_position ${int64} not null
   )${strict}`,
  'insert into audit_export (id, position, deleted_position) values (1, 0, 0)',
  'create index if not exists audit_log_by_position on audit_log (position, id)',
  'create index if not exists audit_log_by_actor on audit_log (workspace_id, actor_id, id)',
  'create index if not exists audit_log_by_action on audit_log (workspace_id, action, id)',
  'create index if not exists audit_log_by_target on audit_log (workspace_id, subject_id, id)',
]
