// Responses to creations with an Idempotency-Key, encrypted by the domain.
import type { Tx } from '../engine/store.ts'

export interface EncryptedResponse {
  id: string
  encrypted: string
  createdAt: number
}

/**
 * Stores the response unless there is one with that id, and returns the stored one. Of two concurrent
 * requests the second blocks on the insert until the first commits, and then reads its response.
 */
export async function storeResponse(
  db: Tx,
  workspaceId: string,
  response: EncryptedResponse,
): Promise<string> {
  await db
    .insertInto('idempotent_answers')
    .values({
      workspace_id: workspaceId,
      id: response.id,
      sealed: response.encrypted,
      created_at: response.createdAt,
    })
    .onConflict((conflict) => conflict.columns(['workspace_id', 'id']).doNothing())
    .execute()
  const { sealed } = await db
    .selectFrom('idempotent_answers')
    .select('sealed')
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', response.id)
    .executeTakeFirstOrThrow()
  return sealed
}

export async function deleteResponsesBefore(db: Tx, workspaceId: string, before: number): Promise<void> {
  await db
    .deleteFrom('idempotent_answers')
    .where('workspace_id', '=', workspaceId)
    .where('created_at', '<', before)
    .execute()
}
