import type { Migration } from './migration.ts'

/** Revoked keys pile up and are never deleted: the active ones of a workspace are counted and listed without passing them. */
export const activeKeys: Migration = () => [
  'create index api_keys_active on api_keys (workspace_id, id) where revoked_at is null',
]
