// Edges report which tunnels are open. Each sync has what changed since the last one that had a response, so
// it may be lost, repeated or delayed; see docs/edges/own.md.
import {
  SYNC_INTERVAL_S,
  SYNC_ITEMS_MAX,
  type SyncRequest,
  type SyncResult,
} from '../../../contract/edge/tunnels.ts'
import { formatPosition, type Position, parsePosition, readHead } from '../../store/change-log/entries.ts'
import type { Tx } from '../../store/engine/store.ts'
import {
  renewLockedSession,
  renewSession,
  type SessionReport,
  updateSession,
} from '../../store/tunnels/edge-sessions.ts'
import { type InstructedTunnel, lockInstructed, setInstructed } from '../../store/tunnels/instructions.ts'
import { nameKey, readRules } from '../../store/tunnels/names.ts'
import {
  deleteRows,
  endOtherTunnels,
  endTunnels,
  endUnreported,
  findTunnels,
  writeTunnels,
} from '../../store/tunnels/rows.ts'
import { changeTunnels, type TunnelChanges } from '../cluster/tunnel-changes.ts'
import type { Services } from '../context.ts'
import { invalid } from '../fault.ts'
import { parseTimestamp } from '../timestamps.ts'
import { admit, describeCount, parseRules, type ReportingEdge } from './admission.ts'
import { closedBy } from './close.ts'
import { enterSession, isLive, LEASE_MS } from './edge-sessions.ts'
import { alertTunnels } from './quota.ts'
import { createTunnelRow, type ParsedTunnel, parseTunnel, restoreAdmitted } from './reported.ts'

/** What the response tells the edge to do. */
type Instructions = Pick<SyncResult, 'close' | 'grantRequired' | 'names'>

interface ParsedSync extends Pick<SyncRequest, 'snapshot'> {
  edgeId: string
  group: string
  verifiedKeys: ReportingEdge['verifiedKeys']
  session: SessionReport
  reported: Map<string, ParsedTunnel>
  closed: Set<string>
}

const NOTHING: Instructions = { close: [], grantRequired: [], names: [] }

const createResult = (state: Partial<SyncResult>): SyncResult => ({
  resync: false,
  replaced: false,
  nextSyncInS: SYNC_INTERVAL_S,
  lease: null,
  ...NOTHING,
  ...state,
})

export async function syncTunnels(
  services: Services,
  edge: ReportingEdge,
  request: SyncRequest,
): Promise<SyncResult> {
  const sync = parseSync(edge, request)
  const { store } = services
  const { edgeId, session, reported, closed } = sync
  // Most syncs change nothing, and are one statement.
  if (reported.size === 0 && closed.size === 0 && session.previous > 0) {
    const renewed = await renewSession(store, edgeId, session, LEASE_MS)
    if (renewed) {
      const instructions = renewed.hasInstructions ? await store.transaction((tx) => instruct(tx, sync)) : {}
      return createResult({ ...instructions, lease: createLease(services, renewed) })
    }
  }
  return changeTunnels(services, (tx, changes) => applySync(tx, services, sync, changes))
}

async function applySync(
  tx: Tx,
  services: Services,
  sync: ParsedSync,
  changes: TunnelChanges,
): Promise<SyncResult> {
  const { edgeId, session, snapshot } = sync
  const { sequence, previous } = session
  const renewed = previous > 0 && (await renewLockedSession(tx, edgeId, session, LEASE_MS))
  if (renewed) {
    const added = await applyChanges(tx, services, sync, changes)
    const instructions = renewed.hasInstructions ? merge(added, await instruct(tx, sync)) : added
    return createResult({ ...instructions, lease: createLease(services, renewed) })
  }
  const stored = await enterSession(tx, changes, edgeId, session.session)
  if (!stored) return createResult({ replaced: true })
  // A repeated or delayed sync: a later one had everything that this one has.
  if (sequence <= stored.sequence) return createResult({})
  if (previous > stored.sequence || (previous > 0 && !isLive(stored))) return createResult({ resync: true })
  await updateSession(tx, edgeId, session, LEASE_MS)
  if (previous === 0 && !snapshot)
    changes.closed.push(...(await endOtherTunnels(tx, edgeId, { ids: sync.reported, sequence, previous })))
  const added = await applyChanges(tx, services, sync, changes)
  const lease = createLease(services, await readHead(tx))
  return createResult({ ...merge(added, await instruct(tx, sync)), lease })
}

/** `head` was read after the edge sent the sync, so a later change is not older than the lease. */
const createLease = ({ propagation }: Services, head: Position): SyncResult['lease'] => ({
  seconds: propagation.edgeLeaseMs === undefined ? null : propagation.edgeLeaseMs / 1_000,
  after: formatPosition(head),
})

const merge = (a: Instructions, b: Instructions): Instructions => ({
  close: [...a.close, ...b.close],
  grantRequired: [...a.grantRequired, ...b.grantRequired],
  names: [...a.names, ...b.names],
})

/**
 * Only tunnels that are not stored need a grant and have to be admitted. This holds after the lease has
 * expired, too: a claim of another edge deletes the tunnels from which it takes the name. For a tunnel that
 * is being claimed, its claim decides.
 */
async function applyChanges(
  tx: Tx,
  services: Services,
  { edgeId, group, verifiedKeys, session, snapshot, reported, closed }: ParsedSync,
  changes: TunnelChanges,
): Promise<Instructions> {
  const { sequence, previous } = session
  const stored = reported.size === 0 ? [] : await findTunnels(tx, edgeId, [...reported.keys()])
  const known = new Set(stored.map(({ id }) => id))
  const added = [...reported.values()].filter(
    ({ tunnel, isClaiming }) => !isClaiming && !known.has(tunnel.id),
  )
  const { granted = [], ungranted = [] } = Object.groupBy(added, ({ tunnel }) =>
    verifiedKeys.has(tunnel.keyId) ? 'granted' : 'ungranted',
  )
  const admission = await admit(tx, services, {
    edgeId,
    group,
    sequence,
    tunnels: granted,
    isClaim: false,
    changes,
  })
  const { rows: opened, rejected, names, quotas } = admission
  const updated = stored.map((tunnel) => {
    const parsed = restoreAdmitted(reported.get(tunnel.id) as ParsedTunnel, tunnel)
    return createTunnelRow(services, { edgeId, sequence }, { parsed, workspace_id: tunnel.workspace_id })
  })
  if (closed.size > 0) changes.closed.push(...(await endTunnels(tx, edgeId, { ids: [...closed], previous })))
  if (opened.length + updated.length > 0) await writeTunnels(tx, [...opened, ...updated])
  if (snapshot?.isLast) changes.closed.push(...(await endUnreported(tx, edgeId, snapshot.first)))
  changes.opened.push(...opened)
  await alertTunnels(tx, services, quotas)
  const close = [...rejected].map(([id, { reason, message }]) => ({ id, reason, message }))
  return { close, grantRequired: ungranted.map(({ tunnel }) => tunnel.id), names }
}

/**
 * What the edge has to do about tunnels that are stored already. It is repeated until a sync confirms a
 * response with it, and closing until the tunnel is reported as closed.
 */
async function instruct(tx: Tx, { edgeId, session }: ParsedSync): Promise<Instructions> {
  const { sequence, previous } = session
  const instructed = await lockInstructed(tx, edgeId, SYNC_ITEMS_MAX)
  if (instructed.length === 0) return NOTHING
  const { confirmed = [], pending = [] } = Object.groupBy(instructed, (tunnel) =>
    isConfirmed(tunnel, previous) ? 'confirmed' : 'pending',
  )
  const { ended = [], open = [] } = Object.groupBy(confirmed, ({ close_reason }) =>
    close_reason === 'ended' ? 'ended' : 'open',
  )
  if (ended.length > 0)
    await deleteRows(
      tx,
      ended.map(({ id }) => ({ edge_id: edgeId, id })),
    )
  await setInstructed(tx, edgeId, tunnelIds(open), null)
  await setInstructed(tx, edgeId, tunnelIds(pending), sequence)
  const { close = [], rules = [] } = Object.groupBy(pending, ({ close_reason }) =>
    close_reason === null ? 'rules' : 'close',
  )
  return { ...NOTHING, close: close.map(closeInstruction), names: await readNameRules(tx, edgeId, rules) }
}

async function readNameRules(
  tx: Tx,
  edgeId: string,
  tunnels: readonly InstructedTunnel[],
): Promise<Instructions['names']> {
  const names = new Map(
    tunnels.map(({ workspace_id, name }) => [nameKey({ workspace_id, name }), { workspace_id, name }]),
  )
  const found = names.size === 0 ? [] : await readRules(tx, [...names.values()])
  return found.map((row) => ({
    workspace: row.slug,
    name: row.name,
    access: parseRules(row.access_rules),
    ...describeCount(row, edgeId),
  }))
}

/** An open tunnel has to be closed however often the edge was told. */
const isConfirmed = ({ close_reason, instruction_sequence: sequence }: InstructedTunnel, previous: number) =>
  (close_reason === null || close_reason === 'ended') &&
  sequence !== null &&
  sequence > 0 &&
  sequence <= previous

const tunnelIds = (tunnels: readonly InstructedTunnel[]) => tunnels.map(({ id }) => id)

function closeInstruction({ id, session_hash, close_reason, close_requested_by }: InstructedTunnel) {
  if (close_reason === 'moved')
    return { id, reason: 'moved' as const, message: 'The tunnel client connected to another edge.' }
  return {
    id,
    reason: 'requested' as const,
    message: closedBy(close_requested_by),
    ...(session_hash !== null && { session: session_hash }),
  }
}

/** If a tunnel is listed twice, the last entry counts. If it is also listed as closed, it is closed. */
function parseSync({ id: edgeId, group, verifiedKeys }: ReportingEdge, request: SyncRequest): ParsedSync {
  const { session, sequence, previous, version, load, snapshot } = request
  const closed = new Set(request.closed)
  const reported = new Map<string, ParsedTunnel>()
  for (const [index, item] of request.changed.entries()) {
    const parsed = parseTunnel(item, `/body/changed/${index}`)
    if (!closed.has(item.id)) reported.set(item.id, parsed)
  }
  const startedAt = parseTimestamp(request.startedAt, () => '/body/startedAt')
  const { tunnels, streams } = load
  const peerAddress = request.peerAddress === undefined ? null : parsePeerAddress(request.peerAddress)
  const applied = request.applied === undefined ? undefined : parsePosition(request.applied)
  return {
    edgeId,
    group,
    verifiedKeys,
    session: {
      ...{ session, sequence, previous, version, startedAt, tunnels, streams, peerAddress },
      appliedSequence: applied?.sequence ?? null,
      appliedChecksum: applied?.checksum ?? null,
    },
    reported,
    closed,
    ...(snapshot && { snapshot }),
  }
}

function parsePeerAddress(text: string): string {
  const url = URL.parse(`tcp://${text}`)
  const isValid = url !== null && url.host === text && Number(url.port) > 0
  if (!isValid) throw invalid('/body/peerAddress', 'must be a host and a port such as 10.0.0.7:8446')
  return text
}
