// Edges: the servers that carry tunnels. Each has a credential of its own.
import { EdgeName } from '../contract/fields.ts'
import { type EdgeRow, insertEdge, listEdges, revokeEdge } from '../store/edges.ts'
import { recordAct } from './audit.ts'
import { awaitEverywhere, tellOfChange } from './changes.ts'
import type { Actor, World } from './context.ts'
import { Fault } from './fault.ts'
import { isoOf, isoOrNull } from './instants.ts'
import { type Checker, checker } from './invalid.ts'
import { hashSecret, mintSecret } from './secret.ts'

const checkName: Checker<string> = checker(EdgeName, 'name')

export async function createEdge(world: World, actor: Actor, name: string) {
  checkName(name)
  const now = world.clock()
  const id = world.ids('edge')
  const token = mintSecret('edge', world.random)
  await world.store.transaction(async (db) => {
    await insertEdge(db, { id, name, hash: hashSecret(token), created_at: now, revoked_at: null })
    await recordAct(db, world, { workspaceId: null, actor, action: 'edge.created', subjectId: id })
  })
  return { id, name, token, createdAt: isoOf(now) }
}

export async function listAll(world: World) {
  return (await listEdges(world.store.db)).map(describeEdge)
}

const describeEdge = (row: EdgeRow) => ({
  id: row.id,
  name: row.name,
  createdAt: isoOf(row.created_at),
  revokedAt: isoOrNull(row.revoked_at),
})

export async function revoke(world: World, actor: Actor, id: string) {
  const place = await world.store.transaction(async (db) => {
    const hash = await revokeEdge(db, id, world.clock())
    if (hash === undefined) return undefined
    await recordAct(db, world, { workspaceId: null, actor, action: 'edge.revoked', subjectId: id })
    return tellOfChange(db, world, { kind: 'edge', subjectId: id, hash })
  })
  await awaitEverywhere(world, place)
  if (!place) throw new Fault('not_found', { message: `There is no active edge ${id}.` })
  return { id, revoked: true as const }
}
