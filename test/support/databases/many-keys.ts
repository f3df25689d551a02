// Inserts many keys by one statement: through the API it would take too long for a test.
import { sql } from 'kysely'
import type { Store } from '../../../src/server/store/engine/store.ts'

/** With four digits as long as a label may be. */
const LABEL = 'revoked key with a label that is eighty characters long, because it may be '

/** Inserts revoked keys and returns their ids, newest first. */
export async function insertRevokedKeys(store: Store, workspaceId: string, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, index) => `tok_${String(index).padStart(26, '0')}`)
  await store.transaction((db) =>
    sql`
      with recursive numbers (n) as (select 0 union all select n + 1 from numbers where n + 1 < ${sql.lit(count)}),
        ids (id) as (select 'tok_0000000000000000' || substr(cast(10000000000 + n as text), 2) from numbers)
      insert into api_keys (id, workspace_id, label, hash, created_at, last_used_at, revoked_at,
        created_by_kind, created_by, last_four)
      select id, ${sql.lit(workspaceId)}, ${sql.lit(LABEL)} || substr(id, 27), id,
        1700000000000, 1700000000001, 1700000000002, 'operator', 'root', substr(id, 27)
      from ids`.execute(db),
  )
  // As autovacuum would; without statistics the planner assumes a small table.
  if (store.engine === 'postgres') await sql`analyze api_keys`.execute(store.db)
  return ids.reverse()
}
