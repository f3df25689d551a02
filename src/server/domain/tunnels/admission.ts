// Decides which tunnels an edge may have open. The same rules apply to claims and to tunnels that a sync
// adds.
import type { AccessRules } from '../../../contract/edge/access-rules.ts'
import type { ClaimedTunnel } from '../../../contract/edge/tunnel-fields.ts'
import {
  type RejectionReason,
  type SyncResult,
  TUNNELS_PER_EDGE_MAX,
} from '../../../contract/edge/tunnels.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../lib/time.ts'
import type { Tx } from '../../store/engine/store.ts'
import { lockKeysShared } from '../../store/keys/rows.ts'
import { findOtherTunnels, type OtherTunnel, resolveKeys } from '../../store/tunnels/admission.ts'
import { countNames } from '../../store/tunnels/counts.ts'
import { lockExpiredSessions } from '../../store/tunnels/edge-sessions.ts'
import {
  type LockedName,
  type NameCount,
  type NameId,
  nameKey,
  trimNames,
  upsertNames,
} from '../../store/tunnels/names.ts'
import { countTunnels, deleteRows, type ReportedRow } from '../../store/tunnels/rows.ts'
import type { EdgeRef } from '../../verification/edge-workspaces.ts'
import type { TunnelChanges } from '../cluster/tunnel-changes.ts'
import type { Services } from '../context.ts'
import { effectiveLimit, isReached, QUOTA_REACHED } from '../quotas/limits.ts'
import { toIso } from '../timestamps.ts'
import { checkQuota, type LimitedTunnel, type TunnelQuotas } from './quota.ts'
import { createTunnelRow, type ParsedTunnel, publicId, type RejectedTunnel } from './reported.ts'
import { lockPorts } from './tcp-ports.ts'

/** Names that a workspace has used or reserved. */
export const NAMES_MAX = 1_000
/** Names are kept for a day after their last use. While a tunnel is open, they are renewed every hour. */
export const NAME_RENEWAL_MS = HOUR_MS
const NAME_RETENTION_MS = DAY_MS + 2 * NAME_RENEWAL_MS

export const nameExpiry = (now: number) => now + NAME_RETENTION_MS

/** An edge that claims or reports tunnels. */
export interface ReportingEdge extends EdgeRef {
  /** Ids of the keys for which it has a valid grant. */
  verifiedKeys: ReadonlySet<string>
}

/** The edge has grants for the keys of all tunnels. */
interface AdmissionRequest {
  /** Gets the tunnels of edges that are gone, whose names others take. */
  changes: TunnelChanges
  edgeId: string
  group: string
  sequence: number
  tunnels: readonly ParsedTunnel[]
  /** Only a claim may take a name over from another edge to which the same client was connected. */
  isClaim: boolean
}

interface Admission {
  rows: ReportedRow[]
  /** Ports of TCP tunnels, by tunnel id. */
  ports: Map<string, number>
  /** By tunnel id. */
  rejected: Map<string, RejectedTunnel>
  /** The names of the admitted tunnels, once each. */
  names: SyncResult['names']
  /** Connections of a claim that have moved here from other edges. */
  moved: OtherTunnel[]
  /** Who closed tunnels of the clients, by their public ids. */
  closures: Map<string, string | null>
  /** For `alertTunnels`. */
  quotas: TunnelQuotas
}

interface Candidate extends NameId, LimitedTunnel {}

const candidateClient = ({ workspace_id, name, parsed }: Candidate) =>
  clientKey({ workspace_id, name, resume_hash: parsed.tunnel.resume ?? null })

/** Locks the names. The caller has locked the session, and stores the rows. */
export async function admit(tx: Tx, services: Services, request: AdmissionRequest): Promise<Admission> {
  const rejected: Admission['rejected'] = new Map()
  const valid = await checkKeys(tx, services, request, rejected)
  const withinLimit = await checkLimit(tx, request, valid, rejected)
  const { admitted: candidates, quotas } = await checkQuota(tx, withinLimit, rejected)
  const tcp = candidates.filter(({ parsed }) => parsed.tunnel.type === 'tcp')
  const assignPort = await lockPorts(tx, services, tcp, request.isClaim)
  const locked = await lockNames(tx, services, candidates)
  const { moved, others, closures } = await findOthers(tx, request, candidates)
  const names = new Map<string, Admission['names'][number]>()
  const counted: Parameters<typeof countNames>[2][number][] = []
  const rows: ReportedRow[] = []
  const ports: Admission['ports'] = new Map()
  for (const candidate of candidates) {
    const { tunnel } = candidate.parsed
    const key = nameKey(candidate)
    const isSameClient = ({ resume_hash }: OtherTunnel) =>
      resume_hash !== null && resume_hash === tunnel.resume
    const isSameTunnel = (other: OtherTunnel) =>
      other.session_hash !== null && other.tunnel_id === candidate.tunnel_id
    const found = others.get(key) ?? []
    const sameName = request.isClaim ? found.filter((other) => !isSameClient(other)) : found
    const joins = sameName.some((other) => isSameTunnel(other) && !isSameClient(other))
    if (!joins && !mayShare(tunnel, sameName, request.isClaim)) {
      rejected.set(tunnel.id, { reason: 'name_taken', message: takenMessage(tunnel, sameName) })
      continue
    }
    const port = tunnel.type === 'tcp' ? await assignPort(candidate) : undefined
    if (typeof port === 'object') {
      rejected.set(tunnel.id, port)
      continue
    }
    if (port !== undefined) ports.set(tunnel.id, port)
    const row = createTunnelRow(services, request, { ...candidate, port })
    const openedAt = found.filter(isSameTunnel).map(({ opened_at }) => opened_at)
    rows.push({ ...row, opened_at: Math.min(row.opened_at, ...openedAt) })
    if (names.has(key)) continue
    const { workspace_id, name } = candidate
    const current = locked.get(key) as LockedName
    const count = decideCount(current, request.edgeId, sameName)
    if (count.counting_edge_id !== current.counting_edge_id)
      counted.push({ workspace_id, name, from: count.counting_from ?? current.now })
    const access = parseRules(current.access_rules)
    names.set(key, { workspace: tunnel.workspace, name, access, ...describeCount(count, request.edgeId) })
  }
  await countNames(tx, request.edgeId, counted)
  return { rows, ports, rejected, names: [...names.values()], moved, closures, quotas }
}

async function checkKeys(
  tx: Tx,
  { clock, limits }: Services,
  { group, tunnels, isClaim }: AdmissionRequest,
  rejected: Admission['rejected'],
): Promise<Candidate[]> {
  const keyIds = new Set(tunnels.map(({ tunnel }) => tunnel.keyId))
  // A revocation that is not seen here waits for the lock, and then finds the tunnel. So does archiving.
  if (keyIds.size > 0) await lockKeysShared(tx, [...keyIds])
  const resolved = keyIds.size === 0 ? [] : await resolveKeys(tx, [...keyIds])
  const byId = new Map(resolved.map((key) => [key.key_id, key]))
  return tunnels.flatMap((parsed) => {
    const { workspace, keyId, name } = parsed.tunnel
    const key = byId.get(keyId)
    const reject = (reason: RejectionReason, message: string) => {
      rejected.set(parsed.tunnel.id, { reason, message })
      return []
    }
    // To the edge, a key of another workspace or group looks like one that does not exist.
    if (key?.slug !== workspace || key.edge_group !== group)
      return reject('invalid_key', 'The API key is not an active key of the workspace. Use another one.')
    if (key.provisioned_at === null)
      return reject(
        'not_provisioned',
        `The workspace "${workspace}" is not provisioned. Ask the operator to provision it.`,
      )
    if (key.archived_at !== null)
      return reject(
        'invalid_key',
        `The workspace "${workspace}" is archived. Ask the operator to restore it.`,
      )
    if (!key.isActive)
      return reject('invalid_key', 'The API key is not an active key of the workspace. Use another one.')
    // A tunnel that is open stays open: its edge rejects the traffic.
    if (isClaim && isReached(key.usage_level, key.usage_level_until ?? 0, clock()))
      return reject('limit_reached', QUOTA_REACHED)
    const quota = effectiveLimit(key.quota_tunnels, limits.quotas.tunnels)
    const { workspace_id } = key
    return { parsed, workspace_id, name, quota, tunnel_id: publicId(workspace_id, parsed.tunnel) }
  })
}

async function checkLimit(
  tx: Tx,
  { edgeId }: AdmissionRequest,
  candidates: Candidate[],
  rejected: Admission['rejected'],
): Promise<Candidate[]> {
  if (candidates.length === 0) return candidates
  const counts = await countTunnels(tx, edgeId, [...new Set(candidates.map((each) => each.workspace_id))])
  return candidates.filter(({ workspace_id, parsed }) => {
    const count = counts.get(workspace_id) ?? 0
    counts.set(workspace_id, count + 1)
    if (count < TUNNELS_PER_EDGE_MAX) return true
    rejected.set(parsed.tunnel.id, {
      reason: 'limit_reached',
      message: `The workspace has ${TUNNELS_PER_EDGE_MAX} open tunnels at this edge, which is the limit.`,
    })
    return false
  })
}

/** Locks the names, and returns their rows. */
async function lockNames(tx: Tx, { clock }: Services, candidates: readonly Candidate[]) {
  const now = clock()
  const unique = new Map(candidates.map((each) => [nameKey(each), each]))
  if (unique.size === 0) return new Map<string, LockedName>()
  const locked = await upsertNames(tx, [...unique.values()], { now, expiresAt: nameExpiry(now) })
  const grown = new Set(
    locked.filter(({ created_at }) => created_at === now).map(({ workspace_id }) => workspace_id),
  )
  for (const workspaceId of grown) await trimNames(tx, workspaceId, NAMES_MAX)
  return new Map(locked.map((name) => [nameKey(name), name]))
}

export const parseRules = (text: string | null): AccessRules | null =>
  text === null ? null : (JSON.parse(text) as AccessRules)

/**
 * One edge counts a name in `peakTunnels`. The edge that opens it takes over if the one that counted does not
 * have it any longer: from the next minute, so that no minute counts it twice.
 */
function decideCount(
  { counting_edge_id, counting_from, now }: NameCount,
  edgeId: string,
  others: readonly OtherTunnel[],
): NameCount {
  const isCounted = counting_edge_id === edgeId || others.some(({ edge_id }) => edge_id === counting_edge_id)
  if (isCounted) return { counting_edge_id, counting_from, now }
  const nextMinute = now - (now % MINUTE_MS) + MINUTE_MS
  const from = counting_edge_id === null ? (counting_from ?? now) : nextMinute
  return { counting_edge_id: edgeId, counting_from: Math.max(from, now), now }
}

/** For an edge. Empty if no edge counts the name. */
export const describeCount = (
  { counting_edge_id, counting_from, now }: NameCount,
  edgeId: string,
): Pick<SyncResult['names'][number], 'counts' | 'countsFrom'> => {
  if (counting_edge_id === null) return {}
  if (counting_edge_id !== edgeId) return { counts: false }
  const isLater = counting_from !== null && counting_from > now
  return { counts: true, ...(isLater && { countsFrom: toIso(counting_from) }) }
}

/** Identifies a connection that has a tunnel of a name. */
export const clientKey = (tunnel: NameId & Pick<ReportedRow, 'resume_hash'>) =>
  `${nameKey(tunnel)} ${tunnel.resume_hash}`

/** Tunnels with these names: those that moved with a claim, by name all at other edges, and closed ones. */
async function findOthers(
  tx: Tx,
  { changes, edgeId, isClaim }: AdmissionRequest,
  candidates: readonly Candidate[],
) {
  const found = await findOtherTunnels(tx, edgeId, candidates)
  const clients = new Set(isClaim ? candidates.map(candidateClient) : [])
  const { moved = [], rest = [] } = Object.groupBy(found, (tunnel) =>
    tunnel.resume_hash !== null && clients.has(clientKey(tunnel)) ? 'moved' : 'rest',
  )
  const closures = new Map(
    found
      .filter(({ session_hash, close_reason }) => session_hash !== null && close_reason !== null)
      .map(({ tunnel_id, close_requested_by }) => [tunnel_id, close_requested_by]),
  )
  const isElsewhere = ({ edge_id, close_reason }: OtherTunnel) =>
    edge_id !== edgeId && close_reason !== 'ended'
  const live = await deleteExpiredEdgeTunnels(tx, changes, rest.filter(isElsewhere))
  return { moved, closures, others: Map.groupBy([...live, ...moved.filter(isElsewhere)], nameKey) }
}

/**
 * An edge whose lease has expired loses the name. Its session is locked first, so that it cannot renew the
 * lease at the same time. Returns the tunnels of the other edges.
 */
async function deleteExpiredEdgeTunnels(
  tx: Tx,
  changes: TunnelChanges,
  tunnels: readonly OtherTunnel[],
): Promise<OtherTunnel[]> {
  const candidates = new Set(tunnels.filter(({ isLive }) => !isLive).map(({ edge_id }) => edge_id))
  const expired = new Set(await lockExpiredSessions(tx, [...candidates]))
  const lost = tunnels.filter(({ edge_id }) => expired.has(edge_id))
  if (lost.length > 0) changes.closed.push(...(await deleteRows(tx, lost)))
  return tunnels.filter(({ edge_id }) => !expired.has(edge_id))
}

/**
 * A claim that asks for a pool may share the name, even if the tunnels before it did not ask. For tunnels
 * that a sync adds, the order is not known, so it is enough that one side asks for a pool.
 */
const mayShare = ({ type, pool }: ClaimedTunnel, others: readonly OtherTunnel[], isClaim: boolean) =>
  others.every((other) => other.type === type && (pool || (!isClaim && other.pool === 1)))

function takenMessage({ name, type }: ClaimedTunnel, others: readonly OtherTunnel[]): string {
  const other = others.find((each) => each.type !== type)
  return other
    ? `The name "${name}" is open as ${other.type} tunnel at another edge, and a name has one type. Use ` +
        'another name.'
    : `The name "${name}" is in use at another edge. Use another name, or --pool to share it with the client ` +
        'that has it.'
}
