import type { Migration } from './migration.ts'

/** Revoked keys and ended links pile up: what is in force is counted and listed without passing them. */
export const activeRows: Migration = () => [
  'create index api_keys_active on api_keys (workspace_id, id) where revoked_at is null',
  'create index links_open on links (workspace_id, expires_at) where ended_at is null',
]
