import type { Migration } from '../migration.ts'

/** Notices to owners and admins of a workspace and alerts to the operator, each once, and their emails. */
export const notices: Migration = ({ int64, strict }) => [
  `create table notices (
     kind text not null,
     subject_id text not null,
     dedup_key text not null,
     workspace_id text not null references workspaces (id),
     created_at ${int64} not null,
     detail text,
     digest_id text,
     primary key (kind, subject_id, dedup_key)
   )${strict}`,
  'create index notices_by_workspace on notices (workspace_id, kind)',
  'create index notices_by_age on notices (created_at)',
  'create index notices_by_digest on notices (digest_id) where digest_id is not null',

  `create table notice_mails (
     digest_id text not null,
     user_id text not null references users (id),
     workspace_id text not null references workspaces (id),
     created_at ${int64} not null,
     attempts integer not null,
     due_at ${int64},
     primary key (digest_id, user_id)
   )${strict}`,
  'create index notice_mails_due on notice_mails (due_at) where due_at is not null',
  'create index notice_mails_by_workspace on notice_mails (workspace_id, created_at)',
  'create index notice_mails_by_age on notice_mails (created_at)',

  `create table operator_alerts (
     kind text not null,
     subject_id text not null,
     dedup_key text not null,
     created_at ${int64} not null,
     detail text not null,
     attempts integer not null,
     due_at ${int64},
     primary key (kind, subject_id, dedup_key)
   )${strict}`,
  'create index operator_alerts_due on operator_alerts (due_at) where due_at is not null',
  'create index operator_alerts_by_age on operator_alerts (created_at)',
]
