// Responses to creations with an Idempotency-Key, encrypted by the domain.
import type { Tx } from '../engine/store.ts'

interface EncryptedResponse {
  id: string
  encrypted: string
  createdAt: number
}

/**
 * Stores the response unless there is one with that id, and returns the stored one. The second of two
 * concurrent requests blocks on the insert until the first commits, and then reads its response.
 */
export async function storeResponse(
  db: Tx,
  workspaceId: string,
  response: EncryptedResponse,
): Promise<string> {
  await db
    .insertInto('idempotent_responses')
    .values({
      workspace_id: workspaceId,
      id: response.id,
      encrypted_response: response.encrypted,
      created_at: response.createdAt,
    })
    .onConflict((conflict) => conflict.columns(['workspace_id', 'id']).doNothing())
    .execute()
  const row = await db
    .selectFrom('idempotent_responses')
    .select('encrypted_response')
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', response.id)
    .executeTakeFirstOrThrow()
  return row.encrypted_response
}

export async function deleteResponsesBefore(db: Tx, workspaceId: string, before: number): Promise<void> {
  await db
    .deleteFrom('idempotent_responses')
    .where('workspace_id', '=', workspaceId)
    .where('created_at', '<', before)
    .execute()
}
