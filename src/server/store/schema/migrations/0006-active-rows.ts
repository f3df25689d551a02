import type { Migration } from './migration.ts'

/** Partial indexes to count and list active keys and open links without scanning revoked and ended ones. */
export const activeRows: Migration = () => [
  'create index api_keys_active on api_keys (workspace_id, id) where revoked_at is null',
  'create index links_open on links (workspace_id, expires_at) where ended_at is null',
]
