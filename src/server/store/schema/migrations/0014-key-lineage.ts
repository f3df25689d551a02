import type { Migration } from './migration.ts'

/**
 * Rotation: keys of one lineage have the id of its first key, and are numbered by generation. Few of them are
 * active at any time, which the index finds. The change log carries the new expiry of a rotated key.
 */
export const keyLineage: Migration = ({ int64 }) => [
  'alter table api_keys add column lineage_id text',
  'alter table api_keys add column generation integer not null default 0',
  `alter table api_keys add column lifetime ${int64}`,
  'alter table api_keys add column last_four text',
  'alter table api_keys add column created_by_kind text',
  `create index api_keys_lineages on api_keys (workspace_id, lineage_id, generation)
     where lineage_id is not null and revoked_at is null`,
  `alter table key_feed add column expires_at ${int64}`,
]
