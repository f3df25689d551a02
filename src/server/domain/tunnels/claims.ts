// An edge claims the name of a tunnel before it opens it.
import type { AccessRules } from '../../../contract/edge/access-rules.ts'
import type { ClaimRejectionReason, ClaimResult, TunnelClaim } from '../../../contract/edge/tunnels.ts'
import type { Tx } from '../../store/engine/store.ts'
import { lockSessionShared } from '../../store/tunnels/edge-sessions.ts'
import { lockCloseReason, markMoved } from '../../store/tunnels/instructions.ts'
import { nameKey, readRules } from '../../store/tunnels/names.ts'
import { findTunnels, insertTunnel, type ReportedRow, writeTunnels } from '../../store/tunnels/rows.ts'
import { usePorts } from '../../store/tunnels/tcp-ports.ts'
import { announce, publishChange } from '../../verification/propagation.ts'
import type { Services } from '../context.ts'
import { recordTunnels } from '../events/tunnel-events.ts'
import { Fault, invalid } from '../fault.ts'
import { admit, parseRules, type ReportingEdge } from './admission.ts'
import { enterSession, isLive, LEASE_MS } from './edge-sessions.ts'
import { closedBy } from './open.ts'
import { alertTunnels } from './quota.ts'
import { isSameTunnel, type ParsedTunnel, parseTunnel } from './reported.ts'

const RETRY_AFTER_S = 1

export async function claimTunnel(
  services: Services,
  { id: edgeId, verifiedKeys }: ReportingEdge,
  claim: TunnelClaim,
): Promise<ClaimResult> {
  const parsed = parseTunnel(claim.tunnel, '/body/tunnel')
  if (!verifiedKeys.has(claim.tunnel.keyId)) return GRANT_REQUIRED
  const { result, changes } = await services.store.transaction((tx) =>
    decide(tx, services, edgeId, { ...claim, parsed }),
  )
  for (const change of changes) announce(services, change)
  return result
}

const GRANT_REQUIRED: ClaimResult = {
  granted: false,
  reason: 'grant_required',
  message: 'The edge must verify the API key again. Try again.',
}

type Changes = Awaited<ReturnType<typeof publishChange>>[]

async function decide(
  tx: Tx,
  services: Services,
  edgeId: string,
  { session: sessionId, sequence, tunnel, parsed }: TunnelClaim & { parsed: ParsedTunnel },
): Promise<{ result: ClaimResult; changes: Changes }> {
  const session =
    (await lockSessionShared(tx, edgeId, sessionId)) ?? (await enterSession(tx, services, edgeId, sessionId))
  if (!session) return reject('replaced', 'Another process uses the credential of this edge.')
  if (!isLive(session))
    throw new Fault('unavailable', {
      message: `This edge has not reported its tunnels for ${LEASE_MS / 1_000} seconds. It must sync first.`,
      retryAfterS: RETRY_AFTER_S,
    })
  if (sequence <= session.sequence) return repeatClaim(tx, edgeId, tunnel)
  const { rows, ports, rejected, names, moved, quotas } = await admit(tx, services, {
    edgeId,
    sequence,
    tunnels: [parsed],
    isClaim: true,
  })
  const rejection = rejected.get(tunnel.id)
  if (rejection) {
    // The quota may have been lowered since the last tunnel was opened.
    await alertTunnels(tx, services, quotas)
    return reject(rejection.reason, rejection.message)
  }
  // All are read before the first is marked: a rejected claim leaves them as they are.
  for (const other of moved) {
    const { close_reason, close_requested_by } = (await lockCloseReason(tx, other)) ?? {}
    if (close_reason && close_reason !== 'moved')
      return reject('closed', closedBy(close_requested_by ?? null))
  }
  for (const other of moved) await markMoved(tx, other, services.clock())
  for (const row of rows) await store(tx, services, row, tunnel)
  await alertTunnels(tx, services, quotas)
  const changes: Changes = []
  for (const id of new Set(moved.map(({ edge_id }) => edge_id)))
    changes.push(await publishChange(tx, services, { kind: 'tunnels', subjectId: id }))
  return { result: grant(names[0]?.access ?? null, ports.get(tunnel.id)), changes }
}

/**
 * A repeated claim has opened the tunnel already. Under the id of another tunnel, nothing would hold the name
 * that was claimed.
 */
async function store(tx: Tx, services: Services, row: ReportedRow, tunnel: TunnelClaim['tunnel']) {
  if (await insertTunnel(tx, row)) return recordTunnels(tx, services, { opened: [row] })
  const [stored] = await findTunnels(tx, row.edge_id, [row.id])
  if (!stored || !isSameTunnel(tunnel, stored))
    throw invalid('/body/tunnel/id', 'belongs to another tunnel of this edge; use a new random id')
  await writeTunnels(tx, [row])
}

/** A sync after the claim had the tunnel, and decided about it. */
async function repeatClaim(tx: Tx, edgeId: string, tunnel: TunnelClaim['tunnel']) {
  const [stored] = await findTunnels(tx, edgeId, [tunnel.id])
  if (!stored || !isSameTunnel(tunnel, stored))
    return reject('outdated', 'The tunnel was closed before its claim reached the control plane. Try again.')
  const [rules] = await readRules(tx, [stored])
  const port = stored.type === 'tcp' ? (await usePorts(tx, [stored])).get(nameKey(stored)) : undefined
  return { result: grant(parseRules(rules?.access_rules ?? null), port), changes: [] }
}

const grant = (access: AccessRules | null, port: number | undefined) => ({
  granted: true as const,
  access,
  ...(port !== undefined && { port }),
})

const reject = (reason: ClaimRejectionReason, message: string) => ({
  result: { granted: false as const, reason, message },
  changes: [],
})
