// The usage level of a workspace in this month: whether it is near a quota of bytes or requests, or has
// reached it. It is stored with the workspace for all nodes, and edges get it with each verification and from
// the stream of changes.

import type { Tx } from '../../store/engine/store.ts'
import { readMonth, updateQuotas } from '../../store/quotas.ts'
import { lockWorkspace, type WorkspaceRules } from '../../store/workspaces.ts'
import { announce, publishChange } from '../../verification/propagation.ts'
import type { Services } from '../context.ts'
import { alertQuotas, type QuotaUse } from './alerts.ts'
import { effectiveQuotas, hasUsageQuota, monthRange, usageLevel } from './limits.ts'

type LevelColumns = Pick<WorkspaceRules, 'usage_level' | 'usage_level_until'>

interface ComputedLevel {
  columns: LevelColumns
  /** How much of each quota is used. */
  uses: QuotaUse[]
}

/** Computes the level from the stored usage. The caller has locked the workspace. */
export async function computeLevel(
  db: Tx,
  services: Services,
  workspace: Omit<WorkspaceRules, 'usage_level'>,
): Promise<ComputedLevel> {
  const quotas = effectiveQuotas(services.limits.quotas, workspace)
  const { from, until } = monthRange(services.clock())
  if (!hasUsageQuota(quotas)) return { columns: { usage_level: null, usage_level_until: null }, uses: [] }
  const usage = await readMonth(db, { workspaceId: workspace.id, from, until })
  const level = usageLevel(usage, quotas)
  return {
    columns: { usage_level: level, usage_level_until: level === null ? null : until },
    uses: (['bytes', 'requests'] as const).map((kind) => ({
      workspaceId: workspace.id,
      kind,
      used: usage[kind],
      limit: quotas[kind],
    })),
  }
}

/** Stores and publishes the level if it has changed, and creates the alerts about it. */
export async function updateLevel(services: Services, workspaceId: string): Promise<void> {
  const change = await services.store.transaction(async (db) => {
    const before = await lockWorkspace(db, workspaceId)
    const { columns: after, uses } = await computeLevel(db, services, before)
    await alertQuotas(db, services, uses)
    const isSame =
      before.usage_level === after.usage_level && before.usage_level_until === after.usage_level_until
    if (isSame) return undefined
    await updateQuotas(db, { id: workspaceId, ...after, quota_revision: before.quota_revision + 1 })
    return publishChange(db, services, { kind: 'workspace-quota', subjectId: workspaceId })
  })
  if (change) announce(services, change)
}
