// Long lists of keys, and responses that are read later.
import { get, type IncomingMessage } from 'node:http'
import type { TestContext } from 'node:test'
import { serve } from '../../support/api/server.ts'
import type { Engine } from '../../support/databases/create.ts'
import { insertRevokedKeys } from '../../support/databases/many-keys.ts'

export async function serveMany(t: TestContext, engine: Engine, count: number) {
  const server = await serve(t, { engine })
  const revoked = await insertRevokedKeys(server.services.store, server.workspace.id, count)
  return { server, ids: [server.key.id, ...revoked] }
}

/** A response that is not read yet. */
export const open = (url: string, key: string) =>
  new Promise<IncomingMessage>((resolve, reject) => {
    get(url, { headers: { authorization: `Bearer ${key}` } }, resolve).on('error', reject)
  })

export async function read(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}
