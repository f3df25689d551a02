import type { Migration } from './migration.ts'

/** What owners restrict in their workspace. A column that is null restricts nothing. */
export const workspacePolicy: Migration = ({ int64 }) => [
  'alter table workspaces add column key_days_max integer',
  `alter table workspaces add column keys_read_only_at ${int64}`,
  'alter table workspaces add column key_creator_role text',
  `alter table workspaces add column two_factor_required_at ${int64}`,
]
