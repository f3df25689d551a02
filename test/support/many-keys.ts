// Inserts many keys directly: through the API it would take too long for a test.
import { sql } from 'kysely'
import type { Store } from '../../src/store/store.ts'

const ROWS_PER_INSERT = 500
/** With four digits as long as a label may be. */
const LABEL = 'revoked key with a label that is eighty characters long, because it may be '

/** Inserts revoked keys and returns their ids, newest first. */
export async function insertRevokedKeys(store: Store, workspaceId: string, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, index) => `tok_${String(index).padStart(26, '0')}`)
  await store.transaction(async (db) => {
    for (let start = 0; start < count; start += ROWS_PER_INSERT)
      await db
        .insertInto('api_keys')
        .values(
          ids.slice(start, start + ROWS_PER_INSERT).map((id) => ({
            id,
            workspace_id: workspaceId,
            label: `${LABEL}${id.slice(-4)}`,
            hash: id,
            created_at: 1_700_000_000_000,
            last_used_at: 1_700_000_000_001,
            revoked_at: 1_700_000_000_002,
            created_by: null,
          })),
        )
        .execute()
  })
  // As autovacuum would; without statistics the planner assumes a small table.
  if (store.engine === 'postgres') await sql`analyze api_keys`.execute(store.db)
  return ids.reverse()
}
