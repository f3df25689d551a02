// Finds out which key or edge a raw secret belongs to, for the operator. This does not count as a use of it.
import { hashSecret, isSecret } from '../../../lib/credentials/secret.ts'
import { findKeyByHash, findKeyById, type KeyRow } from '../../store/keys/rows.ts'
import { findEdgeByHash, getEdge } from '../../store/tunnels/edges.ts'
import { getWorkspace } from '../../store/workspaces.ts'
import type { Services } from '../context.ts'
import { isoOrNull, toIso } from '../timestamps.ts'
import { describeLifecycle } from './lifecycle.ts'
import { describeKeyWorkspace } from './operator.ts'
import { findSuccessor } from './rotation.ts'

export type FoundSecret = Exclude<Awaited<ReturnType<typeof findSecret>>, string>

/** `malformed`: not a whole key or credential, by its format and checksum. */
export async function findSecret({ store: { db } }: Services, secret: string) {
  const hash = hashSecret(secret)
  if (isSecret('key', secret) || isSecret('agent', secret)) {
    const found = await findKeyByHash(db, hash)
    if (!found) return 'unknown'
    const row = (await findKeyById(db, found.id)) as KeyRow
    const successor = await findSuccessor(db, row)
    return {
      kind: 'key' as const,
      ...describeLifecycle(row),
      ...describeKeyWorkspace(await getWorkspace(db, row.workspace_id)),
      successor: successor ? { id: successor.id, lastFour: successor.last_four } : null,
    }
  }
  if (!isSecret('edge', secret)) return 'malformed'
  const found = await findEdgeByHash(db, hash)
  if (!found) return 'unknown'
  const { id, name, created_at, revoked_at } = await getEdge(db, found.id)
  return {
    kind: 'edge' as const,
    id,
    name,
    createdAt: toIso(created_at),
    revokedAt: isoOrNull(revoked_at),
    state: revoked_at === null ? ('active' as const) : ('revoked' as const),
  }
}
