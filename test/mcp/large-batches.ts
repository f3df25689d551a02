// A node with a workspace whose key list is long, and batches of the largest calls.
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { createKey } from '../../src/server/domain/keys/lifecycle.ts'
import { databaseUrl, serve } from '../support/api/server.ts'
import type { Engine } from '../support/databases/create.ts'
import { insertRevokedKeys } from '../support/databases/many-keys.ts'
import { startServing } from '../support/processes/process.ts'
import { type Access, callMessage, postMessage } from './agent.ts'

export const BATCH_MAX = 10
export const PER_KEY_MAX = 4

/** The tool with the largest result. */
export const listCall = (id: number) => callMessage(id, 'list_api_keys', { limit: 1_000 })
export const createBatch = (count: number) => Array.from({ length: count }, (_, index) => listCall(index))

export async function startNode(t: TestContext, engine: Engine) {
  const server = await serve(t, { engine })
  await insertRevokedKeys(server.services.store, server.workspace.id, 1_000)
  const node = await startServing(t, {
    ADIT_DATABASE_URL: databaseUrl(server),
    ADIT_LOG_LEVEL: 'silent',
  })
  const access: Access = { url: node.url, apiKey: server.key.token }
  assert.equal((await postMessage(access, listCall(0))).status, 200)
  const { ctx } = server
  const addAccess = async (): Promise<Access> => ({ url: node.url, apiKey: (await createKey(ctx)).token })
  return { node, access, addAccess }
}
