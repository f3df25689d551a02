import type { Tx } from './store.ts'

export interface SealedAnswer {
  id: string
  sealed: string
  createdAt: number
}

/**
 * Keeps the answer unless one is kept under that id already, and returns the one that is. Two requests at once queue
 * here: the second waits for the first one's transaction and then finds its answer.
 */
export async function keepAnswer(db: Tx, workspaceId: string, answer: SealedAnswer): Promise<string> {
  await db
    .insertInto('idempotent_answers')
    .values({ workspace_id: workspaceId, id: answer.id, sealed: answer.sealed, created_at: answer.createdAt })
    .onConflict((conflict) => conflict.columns(['workspace_id', 'id']).doNothing())
    .execute()
  const { sealed } = await db
    .selectFrom('idempotent_answers')
    .select('sealed')
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', answer.id)
    .executeTakeFirstOrThrow()
  return sealed
}

export async function dropAnswersBefore(db: Tx, workspaceId: string, before: number): Promise<void> {
  await db
    .deleteFrom('idempotent_answers')
    .where('workspace_id', '=', workspaceId)
    .where('created_at', '<', before)
    .execute()
}
