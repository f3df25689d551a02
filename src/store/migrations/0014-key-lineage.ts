import type { Migration } from './migration.ts'

/** Rotation: which key a key replaces. The change log carries the new expiry of the replaced one. */
export const keyLineage: Migration = ({ int64 }) => [
  'alter table api_keys add column predecessor_id text',
  'alter table api_keys add column last_four text',
  `create index api_keys_successors on api_keys (workspace_id, predecessor_id)
     where predecessor_id is not null`,
  `alter table key_feed add column expires_at ${int64}`,
]
