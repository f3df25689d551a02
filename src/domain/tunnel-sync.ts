// Edges report which tunnels are open. Each sync has what changed since the last one that had a response, so it
// may be lost, repeated or delayed; see docs/edges/own.md.
import {
  SYNC_INTERVAL_S,
  SYNC_ITEMS_MAX,
  type SyncRequest,
  type SyncResult,
  type TunnelCloseReason,
} from '../contract/tunnels.ts'
import {
  renewLockedSession,
  renewSession,
  type SessionReport,
  updateSession,
} from '../store/edge-sessions.ts'
import type { Tx } from '../store/store.ts'
import { readRules } from '../store/tunnel-names.ts'
import {
  deleteOtherTunnels,
  deleteTunnels,
  findTunnels,
  lockNoticed,
  type NoticedTunnel,
  setNotice,
  writeTunnels,
} from '../store/tunnels.ts'
import type { Services } from './context.ts'
import { enterSession, isLive, LEASE_MS } from './edge-sessions.ts'
import { type ParsedTunnel, parseTunnel, rowOf } from './reported-tunnels.ts'
import { parseTimestamp } from './timestamps.ts'
import { admit, parseRules } from './tunnel-admission.ts'
import { closedBy } from './tunnels.ts'

type Notices = Pick<SyncResult, 'close' | 'names'>

interface ParsedSync {
  edgeId: string
  session: SessionReport
  reported: Map<string, ParsedTunnel>
  closed: Set<string>
}

const NOTHING: Notices = { close: [], names: [] }

const resultOf = (state: Partial<SyncResult>): SyncResult => ({
  resync: false,
  replaced: false,
  nextSyncInS: SYNC_INTERVAL_S,
  ...NOTHING,
  ...state,
})

export async function syncTunnels(
  services: Services,
  edgeId: string,
  request: SyncRequest,
): Promise<SyncResult> {
  const sync = parseSync(edgeId, request)
  const { store } = services
  const { session, reported, closed } = sync
  // Most syncs change nothing, and are one statement.
  if (reported.size === 0 && closed.size === 0 && session.previous > 0) {
    const renewed = await renewSession(store, edgeId, session, LEASE_MS)
    if (renewed)
      return resultOf(renewed.hasNotices ? await store.transaction((tx) => takeNotices(tx, sync)) : {})
  }
  return store.transaction((tx) => applySync(tx, services, sync))
}

async function applySync(tx: Tx, services: Services, sync: ParsedSync): Promise<SyncResult> {
  const { edgeId, session } = sync
  const { sequence, previous } = session
  const renewed = previous > 0 && (await renewLockedSession(tx, edgeId, session, LEASE_MS))
  if (renewed) {
    const added = await applyChanges(tx, services, sync)
    return resultOf(renewed.hasNotices ? merge(added, await takeNotices(tx, sync)) : added)
  }
  const stored = await enterSession(tx, edgeId, session.session)
  if (!stored) return resultOf({ replaced: true })
  // A repeated or delayed sync: a later one had everything that this one has.
  if (sequence <= stored.sequence) return resultOf({})
  if (previous > stored.sequence || (previous > 0 && !isLive(stored))) return resultOf({ resync: true })
  await updateSession(tx, edgeId, session, LEASE_MS)
  if (previous === 0) await deleteOtherTunnels(tx, edgeId, { ids: sync.reported, sequence })
  const added = await applyChanges(tx, services, sync)
  return resultOf(merge(added, await takeNotices(tx, sync)))
}

const merge = (a: Notices, b: Notices): Notices => ({
  close: [...a.close, ...b.close],
  names: [...a.names, ...b.names],
})

/**
 * Only tunnels that are not stored have to be admitted. Also after the lease has expired: a claim of another edge
 * deletes the tunnels that it takes the name from.
 */
async function applyChanges(
  tx: Tx,
  services: Services,
  { edgeId, session, reported, closed }: ParsedSync,
): Promise<Notices> {
  const { sequence } = session
  const stored = reported.size === 0 ? [] : await findTunnels(tx, edgeId, [...reported.keys()])
  const added = new Map(reported)
  for (const { id } of stored) added.delete(id)
  const { rows, refused, names } = await admit(tx, services, {
    edgeId,
    sequence,
    tunnels: [...added.values()],
    isClaim: false,
  })
  for (const { id, workspace_id } of stored)
    rows.push(
      rowOf(services, { edgeId, sequence }, { parsed: reported.get(id) as ParsedTunnel, workspace_id }),
    )
  if (closed.size > 0) await deleteTunnels(tx, edgeId, [...closed])
  if (rows.length > 0) await writeTunnels(tx, rows)
  const close = [...refused].map(([id, { reason, message }]) => ({ id, reason, message }))
  return { close, names }
}

/**
 * What the edge has to do about tunnels that are stored already. Access rules are repeated until a sync confirms
 * a response with them, and closing until the tunnel is reported as closed.
 */
async function takeNotices(tx: Tx, { edgeId, session }: ParsedSync): Promise<Notices> {
  const { sequence, previous } = session
  const noticed = await lockNoticed(tx, edgeId, SYNC_ITEMS_MAX)
  if (noticed.length === 0) return NOTHING
  const { confirmed = [], pending = [] } = Object.groupBy(noticed, (tunnel) =>
    isConfirmed(tunnel, previous) ? 'confirmed' : 'pending',
  )
  await setNotice(tx, edgeId, idsOf(confirmed), null)
  await setNotice(tx, edgeId, idsOf(pending), sequence)
  const { close = [], rules = [] } = Object.groupBy(pending, ({ close_reason }) =>
    close_reason === null ? 'rules' : 'close',
  )
  const names = new Map(
    rules.map(({ workspace_id, name }) => [`${workspace_id} ${name}`, { workspace_id, name }]),
  )
  const found = names.size === 0 ? [] : await readRules(tx, [...names.values()])
  return {
    close: close.map(closeNotice),
    names: found.map(({ slug, name, access_rules }) => ({
      workspace: slug,
      name,
      access: parseRules(access_rules),
    })),
  }
}

const isConfirmed = ({ close_reason, notice }: NoticedTunnel, previous: number) =>
  close_reason === null && notice !== null && notice > 0 && notice <= previous

const idsOf = (tunnels: readonly NoticedTunnel[]) => tunnels.map(({ id }) => id)

const closeNotice = ({ id, close_reason, close_requested_by }: NoticedTunnel) => ({
  id,
  reason: close_reason as TunnelCloseReason,
  message:
    close_reason === 'moved' ? 'The tunnel client connected to another edge.' : closedBy(close_requested_by),
})

/** A tunnel that is in the list twice counts as it is the last time, and one that is also closed as closed. */
function parseSync(edgeId: string, request: SyncRequest): ParsedSync {
  const { session, sequence, previous, version, load } = request
  const closed = new Set(request.closed)
  const reported = new Map<string, ParsedTunnel>()
  for (const [index, item] of request.changed.entries()) {
    const parsed = parseTunnel(item, `/body/changed/${index}`)
    if (!closed.has(item.id)) reported.set(item.id, parsed)
  }
  const startedAt = parseTimestamp(request.startedAt, () => '/body/startedAt')
  const { tunnels, streams } = load
  return {
    edgeId,
    session: { session, sequence, previous, version, startedAt, tunnels, streams },
    reported,
    closed,
  }
}
