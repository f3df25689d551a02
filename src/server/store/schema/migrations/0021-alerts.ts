import type { Migration } from './migration.ts'

/** Details of notices, alerts to the operator, and how often inactive keys were rejected. */
export const alerts: Migration = ({ int64, strict }) => [
  'alter table notices add column detail text',

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

  `create table key_rejections (
     key_id text not null primary key references api_keys (id),
     hour ${int64} not null,
     attempts ${int64} not null
   )${strict}`,
  'create index key_rejections_by_age on key_rejections (hour)',
]
