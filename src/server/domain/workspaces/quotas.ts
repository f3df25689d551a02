// Shows the quotas of a workspace, and sets them for the operator.

import { runOnShard } from '../../store/engine/postgres/usage-shards.ts'
import { countActiveKeys } from '../../store/keys/rows.ts'
import { countOpenTunnels, readMonth, updateQuotas } from '../../store/quotas.ts'
import { getWorkspace, lockWorkspace } from '../../store/workspaces.ts'
import { awaitPropagation, publishChange } from '../../verification/propagation.ts'
import { changesBetween } from '../audit/changes.ts'
import { writeAudit } from '../audit/entries.ts'
import type { Caller, Context, Services } from '../context.ts'
import { invalid } from '../fault.ts'
import { effectiveQuotas, monthRange, type QuotaKind, quotaKinds, UNLIMITED } from '../quotas/limits.ts'
import { computeLevel } from '../quotas/usage-level.ts'
import { toIso } from '../timestamps.ts'
import { getBySlug } from './manage.ts'

const KEYS_MAX = 1_000_000
const TUNNELS_MAX = 1_000_000

/** All quotas, with or without a limit, and their usage. */
export async function readQuotas({
  store,
  clock,
  limits,
  workspaceId,
}: Services & Pick<Context, 'workspaceId'>) {
  const row = await getWorkspace(store.db, workspaceId)
  const quotas = effectiveQuotas(limits.quotas, row)
  const { from, until } = monthRange(clock())
  const usage = await runOnShard(store.usageShards, workspaceId, () =>
    readMonth(store.db, { workspaceId, from, until }),
  )
  const tunnels = (await countOpenTunnels(store.db, [workspaceId])).get(workspaceId) ?? 0
  // The quota is no upper limit of the count: it may have been lowered.
  const keys = await countActiveKeys(store.db, workspaceId, KEYS_MAX)
  const used: Record<QuotaKind, bigint> = { ...usage, tunnels: BigInt(tunnels), keys: BigInt(keys) }
  return {
    renewsAt: toIso(until),
    quotas: quotaKinds.map((kind) => ({
      kind,
      limit: quotas[kind],
      used: used[kind],
      isDefault: row[`quota_${kind}`] === null,
    })),
  }
}

export const readQuotasBySlug = async (services: Services, slug: string) =>
  readQuotas({ ...services, workspaceId: (await getBySlug(services, slug)).id })

/** `default` is the quota of the configuration. */
export type QuotaSetting = number | 'default' | 'none'

export type QuotaSettings = Partial<Record<QuotaKind, QuotaSetting>>

const toColumn = (setting: QuotaSetting): number | null =>
  setting === 'default' ? null : setting === 'none' ? UNLIMITED : setting

const toSetting = (column: number | null): QuotaSetting =>
  column === null ? 'default' : column === UNLIMITED ? 'none' : column

function checkSettings({ tunnels, keys }: QuotaSettings): void {
  const exceeds = (setting: QuotaSetting | undefined, max: number) =>
    typeof setting === 'number' && setting > max
  if (keys === 'none') throw invalid('keys', 'must have a limit')
  if (exceeds(keys, KEYS_MAX)) throw invalid('keys', `must not be more than ${KEYS_MAX}`)
  if (exceeds(tunnels, TUNNELS_MAX)) throw invalid('tunnels', `must not be more than ${TUNNELS_MAX}`)
}

/** Sets quotas for the operator. When this returns, edges with a stream of changes have the new quotas. */
export async function setQuotas(
  services: Services,
  actor: Caller,
  slug: string,
  settings: QuotaSettings,
): Promise<void> {
  checkSettings(settings)
  const { id, name } = await getBySlug(services, slug)
  const position = await services.store.transaction(async (db) => {
    const before = await lockWorkspace(db, id)
    const kinds = quotaKinds.filter((kind) => settings[kind] !== undefined)
    const readSettings = (row: typeof before) =>
      Object.fromEntries(kinds.map((kind) => [kind, toSetting(row[`quota_${kind}`])]))
    const after = { ...before }
    for (const kind of kinds) after[`quota_${kind}`] = toColumn(settings[kind] as QuotaSetting)
    const changes = changesBetween(readSettings(before), readSettings(after))
    if (Object.keys(changes).length === 0) return undefined
    await updateQuotas(db, {
      id,
      ...Object.fromEntries(kinds.map((kind) => [`quota_${kind}`, after[`quota_${kind}`]])),
      // Nodes compute the level again (domain/quotas/watch.ts): a command may not know their default quotas.
      ...(await computeLevel(db, services, after)).columns,
      quota_revision: before.quota_revision + 1,
    })
    await writeAudit(db, services, {
      workspaceId: id,
      actor,
      action: 'workspace.quota-changed',
      target: { id, name },
      changes,
    })
    return publishChange(db, services, { kind: 'workspace-quota', subjectId: id })
  })
  await awaitPropagation(services, position)
}
