import {
  createEdge,
  listAll,
  revoke as revokeEdge,
  setUrl as setEdgeUrl,
} from '../../server/domain/tunnels/edges.ts'
import { type EdgeUsage, resetEdgeUsage, sumEdgeUsage } from '../../server/domain/usage/reset-edge.ts'
import { UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { green, yellow } from '../style.ts'
import type { Cell } from '../table.ts'
import { printState } from '../workspace/key-state.ts'
import { confirm, withServices } from './with-services.ts'

export async function create(
  { name, url, group }: { name: string; url: string | undefined; group: string | undefined },
  io: Io,
): Promise<void> {
  const edge = await withServices((services, actor) => createEdge(services, actor, name, { url, group }))
  io.info(
    `Created ${edge.id} for edge "${edge.name}". Use the credential as ADIT_EDGE_KEY; it is not shown again.`,
  )
  io.data(edge, edge.token)
}

export async function setUrl(
  { id, url, remove }: { id: string; url: string | undefined; remove: boolean },
  io: Io,
): Promise<void> {
  if ((url === undefined) !== remove)
    throw new UsageError('Expected either a URL or --remove. Run `adit admin edge set-url --help` for usage.')
  const edge = await withServices((services, actor) => setEdgeUrl(services, actor, id, url ?? null))
  io.data(edge, edge.url === null ? `Removed the URL of ${id}.` : `Set the URL of ${id} to ${edge.url}.`)
}

export async function list(io: Io): Promise<void> {
  await io.list([await withServices(listAll)], {
    columns: {
      ID: (edge) => edge.id,
      NAME: (edge) => edge.name,
      GROUP: (edge) => edge.group,
      URL: (edge) => edge.url ?? '',
      'PEER ADDRESS': (edge) => edge.peerAddress ?? '',
      VERSION: (edge) => edge.version ?? '',
      TUNNELS: (edge) => String(edge.tunnels),
      STREAMS: (edge) => String(edge.streams),
      'LAST REPORT': (edge) => io.time(edge.lastSyncAt),
      CREATED: (edge) => io.time(edge.createdAt),
      STATE: (edge) => printEdgeState(edge, io),
    },
    empty: 'No edges. Create one with `adit admin edge create edge-1`.',
    shrink: ['NAME', 'URL', 'PEER ADDRESS', 'CREATED', 'STATE'],
  })
}

type Edge = Awaited<ReturnType<typeof listAll>>[number]

function printEdgeState(edge: Edge, io: Io): Cell {
  if (edge.revokedAt !== null) return printState(edge, io)
  return edge.isConnected ? green('connected') : yellow('not connected')
}

interface Revocation {
  id: string
  yes: boolean
  resetsUsage: boolean
}

export async function revoke({ id, yes, resetsUsage }: Revocation, io: Io): Promise<void> {
  const result = await withServices(async (services, actor) => {
    const edges = await listAll(services)
    const active = edges.filter(({ revokedAt }) => revokedAt === null)
    if (active.length === 1 && active[0]?.id === id)
      await confirm(io, `${id} ("${active[0].name}") is the last active edge.`, yes)
    const isRevoked = edges.some((edge) => edge.id === id && edge.revokedAt !== null)
    if (!resetsUsage) return { ...(await revokeEdge(services, actor, id)), usage: undefined }
    await confirm(io, describeUsage(id, await sumEdgeUsage(services, id)), yes)
    // Revoked first, so that it cannot report the usage again.
    if (!isRevoked) await revokeEdge(services, actor, id)
    return { id, revoked: true as const, usage: await resetEdgeUsage(services, actor, id) }
  })
  const { usage } = result
  io.data(
    result,
    usage
      ? `Revoked ${id}, and deleted its usage: ${usage.days} days of ${usage.workspaces} workspaces.`
      : `Revoked ${id}.`,
  )
}

const describeUsage = (id: string, { workspaces, days, requests, bytes }: EdgeUsage) =>
  `Usage that ${id} has reported in the last 35 days is deleted: ${requests} requests and ${bytes} bytes, on ` +
  `${days} days of ${workspaces} workspaces.`
