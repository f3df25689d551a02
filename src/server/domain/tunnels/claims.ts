// An edge claims the names of tunnels before it opens them.
import type { ClaimRejectionReason, ClaimResult, TunnelClaim } from '../../../contract/edge/tunnels.ts'
import type { Tx } from '../../store/engine/store.ts'
import { lockSessionShared } from '../../store/tunnels/edge-sessions.ts'
import { markMoved } from '../../store/tunnels/instructions.ts'
import { nameKey, readRules } from '../../store/tunnels/names.ts'
import { findTunnels, insertTunnels, type ReportedRow, writeTunnels } from '../../store/tunnels/rows.ts'
import { usePorts } from '../../store/tunnels/tcp-ports.ts'
import { changeTunnels, type TunnelChanges } from '../cluster/tunnel-changes.ts'
import type { Services } from '../context.ts'
import { Fault, invalid } from '../fault.ts'
import { admit, clientKey, describeCount, parseRules, type ReportingEdge } from './admission.ts'
import { closedBy } from './close.ts'
import { enterSession, isLive, LEASE_MS } from './edge-sessions.ts'
import { findOtherEdges } from './edges.ts'
import { alertTunnels } from './quota.ts'
import { isSameTunnel, type ParsedTunnel, parseTunnel } from './reported.ts'

const RETRY_AFTER_S = 1

type Granted = Omit<ClaimResult & { granted: true }, 'edge' | 'edges'>
/** By tunnel id. */
type Decisions = Map<string, Granted | (ClaimResult & { granted: false })>

/** The tunnels of a claim, by id. */
type Claimed = ReadonlyMap<string, ParsedTunnel>

interface ParsedClaim extends Pick<TunnelClaim, 'session' | 'sequence'> {
  edgeId: string
  group: string
  tunnels: Claimed
}

/** Decides about each tunnel separately, in one transaction for all. */
export async function claimTunnels(
  services: Services,
  { id: edgeId, group, verifiedKeys }: ReportingEdge,
  { session, sequence, tunnels }: TunnelClaim,
): Promise<{ results: ClaimResult[] }> {
  const parsed = parseTunnels(tunnels)
  const verified = new Map([...parsed].filter(([, { tunnel }]) => verifiedKeys.has(tunnel.keyId)))
  const claim = { edgeId, group, session, sequence, tunnels: verified }
  const decisions: Decisions =
    verified.size === 0
      ? new Map()
      : await changeTunnels(services, (tx, changes) => decide(tx, services, claim, changes))
  const others = await findOtherEdges(services, edgeId)
  return {
    results: tunnels.map(({ id }) => {
      const decision = decisions.get(id) ?? GRANT_REQUIRED
      return decision.granted ? { ...decision, ...others } : decision
    }),
  }
}

function parseTunnels(tunnels: TunnelClaim['tunnels']): Claimed {
  const parsed = new Map<string, ParsedTunnel>()
  for (const [index, tunnel] of tunnels.entries()) {
    const path = `/body/tunnels/${index}`
    if (parsed.has(tunnel.id)) throw invalid(`${path}/id`, 'is that of another tunnel of this claim')
    parsed.set(tunnel.id, parseTunnel(tunnel, path))
  }
  return parsed
}

const reject = (reason: ClaimRejectionReason, message: string) => ({
  granted: false as const,
  reason,
  message,
})

const grant = (fields: Omit<Granted, 'granted' | 'port'>, port: number | undefined): Granted => ({
  granted: true,
  ...fields,
  ...(port !== undefined && { port }),
})

const GRANT_REQUIRED = reject('grant_required', 'The edge must verify the API key again. Try again.')
const REPLACED = reject('replaced', 'Another process uses the credential of this edge.')
const OUTDATED = reject(
  'outdated',
  'The tunnel was closed before its claim reached the control plane. Try again.',
)

async function decide(
  tx: Tx,
  services: Services,
  claim: ParsedClaim,
  changes: TunnelChanges,
): Promise<Decisions> {
  const { edgeId, session: sessionId, sequence, tunnels } = claim
  const session =
    (await lockSessionShared(tx, edgeId, sessionId)) ?? (await enterSession(tx, changes, edgeId, sessionId))
  if (!session) return new Map([...tunnels.keys()].map((id) => [id, REPLACED]))
  if (!isLive(session))
    throw new Fault('unavailable', {
      message: `This edge has not reported its tunnels for ${LEASE_MS / 1_000} seconds. It must sync first.`,
      retryAfterS: RETRY_AFTER_S,
    })
  return sequence <= session.sequence ? repeatClaim(tx, claim) : openTunnels(tx, services, claim, changes)
}

async function openTunnels(
  tx: Tx,
  services: Services,
  claim: ParsedClaim,
  changes: TunnelChanges,
): Promise<Decisions> {
  const { edgeId, group, sequence, tunnels } = claim
  const { rows, ports, rejected, names, moved, closures, quotas } = await admit(tx, services, {
    edgeId,
    group,
    sequence,
    tunnels: [...tunnels.values()],
    isClaim: true,
    changes,
  })
  const decisions: Decisions = new Map()
  for (const [id, { reason, message }] of rejected) decisions.set(id, reject(reason, message))
  const fieldsByName = new Map(
    names.map(({ workspace, name, ...fields }) => [`${workspace} ${name}`, fields] as const),
  )
  const opened: ReportedRow[] = []
  for (const row of rows) {
    const closer = closures.get(row.tunnel_id)
    if (closer !== undefined) {
      decisions.set(row.id, reject('closed', closedBy(closer)))
      continue
    }
    const { workspace, name } = (tunnels.get(row.id) as ParsedTunnel).tunnel
    const fields = fieldsByName.get(`${workspace} ${name}`) ?? { access: null }
    decisions.set(row.id, grant(fields, ports.get(row.id)))
    opened.push(row)
  }
  const clients = new Set(opened.map(clientKey))
  const movedHere = moved.filter((other) => clients.has(clientKey(other)))
  await markMoved(tx, movedHere, services.clock())
  changes.moved.push(...movedHere)
  changes.opened.push(...(await storeTunnels(tx, claim, opened)))
  // Called even if none was opened: the quota may have been lowered since the last tunnel was.
  await alertTunnels(tx, services, quotas)
  return decisions
}

/**
 * Returns the tunnels that were not stored before: a claim may be repeated. If an id belongs to another
 * tunnel, the whole claim is rejected, because no row would have the claimed name.
 */
async function storeTunnels(
  tx: Tx,
  { edgeId, tunnels }: ParsedClaim,
  rows: readonly ReportedRow[],
): Promise<ReportedRow[]> {
  const inserted = new Set(await insertTunnels(tx, rows))
  const { opened = [], repeated = [] } = Object.groupBy(rows, ({ id }) =>
    inserted.has(id) ? 'opened' : 'repeated',
  )
  const stored = await findStored(
    tx,
    edgeId,
    repeated.map(({ id }) => id),
    tunnels,
  )
  const conflicts = new Set(repeated.map(({ id }) => id)).difference(new Set(stored.map(({ id }) => id)))
  for (const [index, id] of [...tunnels.keys()].entries())
    if (conflicts.has(id))
      throw invalid(
        `/body/tunnels/${index}/id`,
        'belongs to another tunnel of this edge; use a new random id',
      )
  await writeTunnels(tx, repeated)
  return opened
}

/** Finds the stored tunnels that are the same as in the claim. */
async function findStored(tx: Tx, edgeId: string, ids: readonly string[], tunnels: Claimed) {
  const stored = await findTunnels(tx, edgeId, ids)
  return stored.filter((tunnel) => isSameTunnel((tunnels.get(tunnel.id) as ParsedTunnel).tunnel, tunnel))
}

/**
 * Responds to a claim that arrives after a sync that was sent later. The sync had the tunnels of the claim,
 * too, so those that are not open now were closed or rejected.
 */
async function repeatClaim(tx: Tx, { edgeId, tunnels }: ParsedClaim): Promise<Decisions> {
  const open = await findStored(tx, edgeId, [...tunnels.keys()], tunnels)
  const rules = new Map((await readRules(tx, open)).map((row) => [nameKey(row), row]))
  const ports = await usePorts(
    tx,
    open.filter(({ type }) => type === 'tcp'),
  )
  const decisions: Decisions = new Map([...tunnels.keys()].map((id) => [id, OUTDATED]))
  for (const tunnel of open) {
    const key = nameKey(tunnel)
    const port = tunnel.type === 'tcp' ? ports.get(key) : undefined
    const row = rules.get(key)
    const fields = row && { access: parseRules(row.access_rules), ...describeCount(row, edgeId) }
    decisions.set(tunnel.id, grant(fields ?? { access: null }, port))
  }
  return decisions
}
