// More keys than a workspace could be given through the API in the time of a test.
import { sql } from 'kysely'
import type { Store } from '../../src/store/store.ts'

const ROWS_AT_ONCE = 500

/** Revoked ones, as a loop of creations and revocations leaves them behind; returns their ids, newest first. */
export async function insertRevokedKeys(store: Store, workspaceId: string, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, index) => `tok_${String(index).padStart(26, '0')}`)
  await store.transaction(async (db) => {
    for (let start = 0; start < count; start += ROWS_AT_ONCE)
      await db
        .insertInto('api_keys')
        .values(
          ids.slice(start, start + ROWS_AT_ONCE).map((id) => ({
            id,
            workspace_id: workspaceId,
            label: `revoked key with a label that is eighty characters long, because it may be ${id.slice(-4)}`,
            hash: id,
            created_at: 1_700_000_000_000,
            last_used_at: 1_700_000_000_001,
            revoked_at: 1_700_000_000_002,
            created_by: null,
          })),
        )
        .execute()
  })
  // As autovacuum does after as many changes; without it the planner takes the table for a small one.
  if (store.engine === 'postgres') await sql`analyze api_keys`.execute(store.db)
  return ids.reverse()
}
