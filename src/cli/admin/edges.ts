import { createEdge, listAll, revoke as revokeEdge } from '../../domain/edges.ts'
import type { Io } from '../io.ts'
import { printState } from '../key-state.ts'
import { table } from '../table.ts'
import { withServices } from './with-services.ts'

export async function create(name: string, io: Io): Promise<void> {
  const edge = await withServices(io, (services, actor) => createEdge(services, actor, name))
  io.info(`Minted ${edge.id} for the edge "${edge.name}". Save the credential: it is not shown again.`)
  io.data(edge, edge.token)
}

export async function list(io: Io): Promise<void> {
  const edges = await withServices(io, listAll)
  const rows = edges.map((edge) => [edge.id, edge.name, edge.createdAt, printState(edge)])
  io.data(edges, table(['ID', 'NAME', 'CREATED', 'STATE'], rows))
}

export async function revoke(id: string, io: Io): Promise<void> {
  const revoked = await withServices(io, (services, actor) => revokeEdge(services, actor, id))
  io.data(revoked, `Revoked ${id}.`)
}
