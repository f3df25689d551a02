// Edges, the servers that carry tunnels: create, list, set their URLs, revoke. Each has its own credential.
import { EdgeName, EdgeUrl } from '../../../contract/fields.ts'
import { PAGE_ITEMS } from '../../../contract/limits.ts'
import { createSecret, hashSecret } from '../../../lib/credentials/secret.ts'
import { lockHead } from '../../store/change-log/entries.ts'
import type { Tx } from '../../store/engine/store.ts'
import { endSession } from '../../store/tunnels/edge-sessions.ts'
import {
  type ConnectedEdge,
  findActiveEdge,
  findEdgeByHash,
  getEdge,
  insertEdge,
  listActiveEdges,
  listConnectedEdges,
  listEdges,
  listEdgeUrls,
  listReportedEdges,
  type ReportedEdge,
  revokeEdge,
  updateEdgeUrl,
} from '../../store/tunnels/edges.ts'
import { countByEdge } from '../../store/tunnels/lists.ts'
import { getWorkspace } from '../../store/workspaces.ts'
import { awaitPropagation, type KeyChange, publishChange } from '../../verification/propagation.ts'
import { writeAudit } from '../audit/entries.ts'
import { requireGroup } from '../cluster/groups.ts'
import type { Actor, Context, Services } from '../context.ts'
import { Fault } from '../fault.ts'
import { type PageRequest, toPageBy } from '../pagination.ts'
import { isoOrNull, toIso } from '../timestamps.ts'
import { type Checker, checker } from '../validation.ts'
import { DEFAULT_EDGE_GROUP } from '../workspaces/manage.ts'

const LIST_MAX = 1_000

const checkName: Checker<string> = checker(EdgeName, 'name')
const checkUrl: Checker<string> = checker(EdgeUrl, 'url')

/** An edge never sets its own URL: with a stolen credential it could collect API keys. */
export async function createEdge(
  services: Services,
  actor: Actor,
  name: string,
  { url: urlText, group = DEFAULT_EDGE_GROUP }: { url?: string | undefined; group?: string | undefined } = {},
) {
  checkName(name)
  const url = urlText === undefined ? null : normalizeUrl(urlText)
  const now = services.clock()
  const id = services.ids('edge')
  const token = createSecret('edge', services.random)
  await services.store.transaction(async (db) => {
    await requireGroup(db, group)
    // Names of revoked edges are free again, so there is no unique index that would reject a duplicate.
    await lockHead(db)
    const existing = (await listEdges(db)).find((edge) => edge.name === name && edge.revoked_at === null)
    if (existing)
      throw new Fault('conflict', {
        message:
          `An edge named "${name}" already exists. Choose another name, ` +
          `or revoke it first with \`adit admin edge revoke ${existing.id}\`.`,
      })
    const hash = hashSecret(token)
    await insertEdge(db, { id, name, url, hash, edge_group: group, created_at: now, revoked_at: null })
    await writeAudit(db, services, { workspaceId: null, actor, action: 'edge.created', target: { id, name } })
  })
  return { id, name, group, url, token, createdAt: toIso(now) }
}

function normalizeUrl(text: string): string {
  const url = URL.parse(text)?.href.replace(/\/+$/, '')
  checkUrl(url ?? '')
  return url as string
}

/** Null removes it. */
export async function setUrl(services: Services, actor: Actor, id: string, urlText: string | null) {
  const url = urlText === null ? null : normalizeUrl(urlText)
  await services.store.transaction(async (db) => {
    const edge = await updateEdgeUrl(db, id, url)
    if (!edge) throw noActiveEdge(id)
    const target = { id, name: edge.name }
    await writeAudit(db, services, { workspaceId: null, actor, action: 'edge.url-changed', target })
  })
  return { id, url }
}

/**
 * The edge for tunnel clients: the connected one with the fewest tunnels. Null if no edge has a URL, and if
 * edges have different ones but do not forward to each other: DNS leads requests to any of them, so it leads
 * the clients, too.
 */
export async function findEdgeUrl({ store, workspaceId }: Context): Promise<string | null> {
  const { edge_group } = await getWorkspace(store.db, workspaceId)
  const connected = await listConnectedEdges(store.db, edge_group, LIST_MAX)
  const [first] = connected
  if (!first) {
    const [url = null, ...others] = await listEdgeUrls(store.db, workspaceId, 2)
    return others.length > 0 ? null : url
  }
  const areForwarding = connected.every(({ peerAddress }) => peerAddress !== null)
  return areForwarding || connected.every(({ url }) => url === first.url) ? first.url : null
}

/** How many other edges a client is told. */
const OTHERS_MAX = 3
/** They are chosen from so many edges with the fewest tunnels. */
const CANDIDATES_MAX = 30

/**
 * For the clients of an edge: its URL, and those of other edges of its group, at other
 * hosts and with few tunnels first.
 */
export async function findOtherEdges(
  { store }: Services,
  edgeId: string,
): Promise<{ edge?: string; edges?: string[] }> {
  const { url, edge_group } = await getEdge(store.db, edgeId)
  const connected = await listConnectedEdges(store.db, edge_group, CANDIDATES_MAX)
  return { ...(url !== null && { edge: url }), ...chooseOthers(connected, url) }
}

function chooseOthers(connected: readonly ConnectedEdge[], url: string | null): { edges?: string[] } {
  const others = connected.flatMap((other) => (other.url === url ? [] : other.url))
  const hostname = url === null ? '' : new URL(url).hostname
  const { far = [], near = [] } = Object.groupBy(new Set(others), (other) =>
    new URL(other).hostname === hostname ? 'near' : 'far',
  )
  const edges = [...far, ...near].slice(0, OTHERS_MAX)
  return edges.length > 0 ? { edges } : {}
}

/** The interval of syncs, which have the others. */
const CONNECTED_FRESH_MS = 5_000

/** Finds other edges for syncs. All edges of a group share what was read. */
export function createOtherEdges({ store }: Pick<Services, 'store'>) {
  const groups = new Map<string, { readAt: number; edges: Promise<ConnectedEdge[]> }>()
  return async ({ id, group }: { id: string; group: string }) => {
    let read = groups.get(group)
    if (!read || performance.now() - read.readAt > CONNECTED_FRESH_MS) {
      read = {
        readAt: performance.now(),
        edges: listConnectedEdges(store.db, group, CANDIDATES_MAX),
      }
      groups.set(group, read)
    }
    const edges = await read.edges.catch((error) => {
      groups.delete(group)
      throw error
    })
    return chooseOthers(
      edges.filter((edge) => edge.id !== id),
      edges.find((edge) => edge.id === id)?.url ?? null,
    )
  }
}

const noActiveEdge = (id: string) => new Fault('not_found', { message: `There is no active edge ${id}.` })

/** Undefined if the credential is unknown or revoked. */
export async function findByCredential({ store }: Services, token: string) {
  const found = await findEdgeByHash(store.db, hashSecret(token))
  if (found?.revoked_at !== null) return undefined
  const { id, url } = await getEdge(store.db, found.id)
  return { id, url, token }
}

/** For the operator, with the load that each edge has reported. */
export async function listAll({ store }: Services) {
  const rows = await listReportedEdges(store.db)
  return rows.map((row) => ({
    id: row.id,
    name: row.name,
    group: row.edge_group,
    url: row.url,
    createdAt: toIso(row.created_at),
    revokedAt: isoOrNull(row.revoked_at),
    ...describeReport(row),
    peerAddress: row.peer_address,
    tunnels: row.tunnels ?? 0,
    streams: row.streams ?? 0,
  }))
}

const describeReport = (row: ReportedEdge) => ({
  version: row.version,
  startedAt: isoOrNull(row.started_at),
  lastSyncAt: isoOrNull(row.last_sync_at),
  isConnected: Boolean(row.isConnected),
})

/** The active edges of the group of a workspace by name, with its tunnels at each. */
export async function listForWorkspace(
  { store, workspaceId }: Context,
  { limit = PAGE_ITEMS.default, cursor }: PageRequest,
) {
  const rows = await listActiveEdges(store.db, workspaceId, { after: cursor, limit: limit + 1 })
  const { page, next } = toPageBy(rows, limit, ({ name }) => name)
  const open = await countByEdge(store.db, workspaceId)
  const edges = page.map((row) => ({
    id: row.id,
    name: row.name,
    url: row.url,
    ...describeReport(row),
    tunnels: open.get(row.id) ?? 0,
  }))
  return { edges, next }
}

/**
 * The newest active edge of the workspace's group, which the dashboard names when it explains how to open a
 * tunnel.
 */
export const findActiveEdgeName = async ({ store, workspaceId }: Context): Promise<string | null> =>
  (await findActiveEdge(store.db, workspaceId))?.name ?? null

export async function revoke(services: Services, actor: Actor, id: string) {
  const position = await services.store.transaction(async (db) => {
    const change = await revokeActive(db, services, actor, id)
    return change && publishChange(db, services, change)
  })
  await awaitPropagation(services, position)
  if (!position) throw noActiveEdge(id)
  return { id, revoked: true as const }
}

/** The change to publish; undefined if there is no active edge with this id. */
export async function revokeActive(
  db: Tx,
  services: Services,
  actor: Actor,
  id: string,
): Promise<KeyChange | undefined> {
  const revoked = await revokeEdge(db, id, services.clock())
  if (!revoked) return undefined
  await endSession(db, id)
  const target = { id, name: revoked.name }
  await writeAudit(db, services, { workspaceId: null, actor, action: 'edge.revoked', target })
  return { kind: 'edge', subjectId: id, hash: revoked.hash }
}
