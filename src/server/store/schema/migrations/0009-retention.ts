import type { Migration } from './migration.ts'

/**
 * The row of the maintenance job (store/maintenance/state.ts), and the indexes it deletes by.
 * `if not exists`: building an index blocks writes to its table, so the operator of a large database may
 * create it before, concurrently. None is on api_keys, audit_log or a usage table.
 */
export const retention: Migration = ({ int64, strict }) => [
  `create table maintenance (
     id integer primary key,
     owner text not null,
     due_at ${int64} not null,
     usage_floor ${int64} not null,
     usage_floor_at ${int64} not null,
     usage_cursor text
   )${strict}`,
  `insert into maintenance (id, owner, due_at, usage_floor, usage_floor_at) values (1, '', 0, 0, 0)`,

  'create index if not exists sessions_by_expiry on sessions (expires_at)',
  'create index if not exists verifications_by_expiry on verifications (expires_at)',
  // Only the start of the value: it may be too long for an index.
  'create index if not exists verifications_by_value on verifications (substr(value, 1, 64))',
  'create index if not exists links_by_expiry on links (expires_at)',
  'create index if not exists links_by_email on links (email, created_at)',
  'create index if not exists links_by_creator on links (creator_id, created_at)',
  'create index if not exists used_codes_by_age on used_codes (at)',
  'create index if not exists idempotent_answers_by_creation on idempotent_answers (created_at)',
]
