import type { Migration } from './migration.ts'

/** Quotas of workspaces, and how much of this month's usage quotas is used. */
export const quotas: Migration = ({ int64 }) => [
  ...['bytes', 'requests', 'tunnels', 'keys'].map(
    (kind) => `alter table workspaces add column quota_${kind} ${int64}`,
  ),
  'alter table workspaces add column usage_level text',
  `alter table workspaces add column usage_level_until ${int64}`,
  'alter table workspaces add column quota_revision integer not null default 0',
  'create index workspaces_by_level on workspaces (usage_level_until) where usage_level is not null',
]
