// The quota of open tunnels, at all edges together.
import type { Tx } from '../../store/engine/store.ts'
import { countOpenTunnels } from '../../store/quotas.ts'
import { lockWorkspaces } from '../../store/workspaces.ts'
import type { Services } from '../context.ts'
import { alertQuotas } from '../quotas/alerts.ts'
import { reachedThreshold } from '../quotas/limits.ts'
import type { ParsedTunnel, RejectedTunnel } from './reported.ts'

export interface LimitedTunnel {
  workspace_id: string
  parsed: ParsedTunnel
  /** The public id of the tunnel. */
  tunnel_id: string
  /** How many tunnels the workspace may have open; null: no limit. */
  quota: number | null
}

/** The quotas of workspaces that may need an alert. */
export type TunnelQuotas = ReadonlyMap<string, number>

/** Locks the workspaces that have a quota, so that no other edge opens a tunnel at the same time. */
export async function checkQuota<T extends LimitedTunnel>(
  tx: Tx,
  candidates: T[],
  rejected: Map<string, RejectedTunnel>,
): Promise<{ admitted: T[]; quotas: TunnelQuotas }> {
  const withQuota = candidates.filter(({ quota }) => quota !== null)
  if (withQuota.length === 0) return { admitted: candidates, quotas: new Map() }
  const workspaceIds = [...new Set(withQuota.map(({ workspace_id }) => workspace_id))]
  await lockWorkspaces(tx, workspaceIds)
  // Repeated claims and clients that reconnect do not count twice.
  const open = await countOpenTunnels(
    tx,
    workspaceIds,
    withQuota.map(({ tunnel_id }) => tunnel_id),
  )
  const counted = new Set<string>()
  const admitted = candidates.filter(({ workspace_id, tunnel_id, parsed, quota }) => {
    const count = open.get(workspace_id) ?? 0
    if (quota === null || counted.has(tunnel_id)) return true
    if (count < quota) {
      open.set(workspace_id, count + 1)
      counted.add(tunnel_id)
      return true
    }
    rejected.set(parsed.tunnel.id, {
      reason: 'limit_reached',
      message:
        `The workspace has ${quota} open tunnels, which is its quota. Close others, or ask the operator for ` +
        'more.',
    })
    return false
  })
  const quotas = new Map(withQuota.map(({ workspace_id, quota }) => [workspace_id, quota as number]))
  for (const [id, quota] of quotas) if (reachedThreshold(open.get(id) ?? 0, quota) === 0) quotas.delete(id)
  return { admitted, quotas }
}

/** Call it after the tunnels are stored: some that were admitted may not be opened, and others are closed. */
export async function alertTunnels(tx: Tx, services: Services, quotas: TunnelQuotas): Promise<void> {
  if (quotas.size === 0) return
  const open = await countOpenTunnels(tx, [...quotas.keys()])
  const uses = [...quotas].map(([workspaceId, limit]) => ({
    workspaceId,
    kind: 'tunnels' as const,
    used: open.get(workspaceId) ?? 0,
    limit,
  }))
  await alertQuotas(tx, services, uses)
}
