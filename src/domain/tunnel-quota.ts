// The quota of open tunnels, at all edges together.
import type { Refusal } from '../contract/tunnels.ts'
import { countOpenTunnels } from '../store/quotas.ts'
import type { Tx } from '../store/store.ts'
import { lockWorkspace } from '../store/workspaces.ts'
import type { Services } from './context.ts'
import { alertQuota } from './quota-alerts.ts'
import type { ParsedTunnel } from './reported-tunnels.ts'

export interface LimitedTunnel {
  workspace_id: string
  parsed: ParsedTunnel
  /** How many tunnels the workspace may have open; null: no limit. */
  quota: number | null
}

/** Locks the workspaces that have a quota, so that no other edge opens a tunnel at the same time. */
export async function checkQuota<T extends LimitedTunnel>(
  tx: Tx,
  services: Services,
  candidates: T[],
  refused: Map<string, { reason: Refusal; message: string }>,
): Promise<T[]> {
  const limited = candidates.filter(({ quota }) => quota !== null)
  if (limited.length === 0) return candidates
  const workspaceIds = [...new Set(limited.map(({ workspace_id }) => workspace_id))].sort()
  for (const id of workspaceIds) await lockWorkspace(tx, id)
  const open = await countOpenTunnels(tx, workspaceIds, {
    ids: limited.map(({ parsed }) => parsed.tunnel.id),
    // With the name: a client may have tunnels of several names open with one secret.
    resumed: limited.flatMap(({ workspace_id, parsed: { tunnel } }) =>
      tunnel.resume === undefined ? [] : { workspace_id, name: tunnel.name, resume_hash: tunnel.resume },
    ),
  })
  const admitted = candidates.filter(({ workspace_id, parsed, quota }) => {
    const count = open.get(workspace_id) ?? 0
    if (quota === null || count < quota) {
      open.set(workspace_id, count + 1)
      return true
    }
    refused.set(parsed.tunnel.id, {
      reason: 'limit_reached',
      message:
        `The workspace has ${quota} open tunnels, which is its quota. Close others, or ask the operator for ` +
        'more.',
    })
    return false
  })
  const limits = new Map(limited.map(({ workspace_id, quota }) => [workspace_id, quota]))
  for (const id of workspaceIds)
    await alertQuota(tx, services, id, {
      kind: 'tunnels',
      used: open.get(id) ?? 0,
      limit: limits.get(id) ?? null,
    })
  return admitted
}
