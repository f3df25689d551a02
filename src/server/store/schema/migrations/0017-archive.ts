import type { Migration } from './migration.ts'

/** Archived workspaces, and the user who created a workspace in the dashboard. */
export const archive: Migration = ({ int64 }) => [
  `alter table workspaces add column archived_at ${int64}`,
  'alter table workspaces add column creator_id text',
  'create index workspaces_of_creator on workspaces (creator_id) where creator_id is not null',
]
