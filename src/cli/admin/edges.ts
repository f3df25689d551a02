import { createEdge, listAll, revoke as revokeEdge } from '../../domain/edges.ts'
import type { Io } from '../io.ts'
import { table } from '../table.ts'
import { withWorld } from './with-world.ts'

export async function create(name: string, io: Io): Promise<void> {
  const edge = await withWorld(io, (world, actor) => createEdge(world, actor, name))
  io.say(`Minted ${edge.id} for the edge "${edge.name}". Save the credential: it is not shown again.`)
  io.data(edge, edge.token)
}

export async function list(io: Io): Promise<void> {
  const edges = await withWorld(io, listAll)
  const rows = edges.map((edge) => [
    edge.id,
    edge.name,
    edge.createdAt,
    edge.revokedAt ? `revoked ${edge.revokedAt}` : 'active',
  ])
  io.data(edges, table(['ID', 'NAME', 'CREATED', 'STATE'], rows))
}

export async function revoke(id: string, io: Io): Promise<void> {
  const revoked = await withWorld(io, (world, actor) => revokeEdge(world, actor, id))
  io.data(revoked, `Revoked ${id}.`)
}
