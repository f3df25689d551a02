import { readQuantity } from '../../server/config/values.ts'
import { isMonthly, type QuotaKind, quotaKinds, quotaTitles } from '../../server/domain/quotas/limits.ts'
import {
  type QuotaSetting,
  type QuotaSettings,
  readQuotasBySlug,
  setQuotas,
} from '../../server/domain/workspaces/quotas.ts'
import { formatBytes } from '../bytes.ts'
import { UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { withServices } from './with-services.ts'

export async function quota(
  { slug, ...limits }: { slug: string } & Record<QuotaKind, string | undefined>,
  io: Io,
): Promise<void> {
  const settings = readSettings(limits)
  const { renewsAt, quotas } = await withServices(async (services, actor) => {
    if (Object.keys(settings).length > 0) await setQuotas(services, actor, slug, settings)
    return readQuotasBySlug(services, slug)
  })
  const amount = (kind: QuotaKind, value: bigint | number) =>
    kind === 'bytes' ? formatBytes(value) : value.toLocaleString('en-US')
  const rows = quotas.map(({ kind, limit, used, isDefault }) => ({
    kind,
    limit,
    used,
    left: limit === null ? null : used >= BigInt(limit) ? 0n : BigInt(limit) - used,
    isDefault,
    renewsAt: isMonthly(kind) ? renewsAt : null,
  }))
  await io.list([rows], {
    columns: {
      QUOTA: ({ kind }) => quotaTitles[kind],
      LIMIT: ({ kind, limit }) => (limit === null ? 'none' : amount(kind, limit)),
      USED: ({ kind, used }) => amount(kind, used),
      LEFT: ({ kind, left }) => (left === null ? '' : amount(kind, left)),
      RENEWS: ({ renewsAt }) => (renewsAt === null ? '' : io.time(renewsAt)),
      SOURCE: ({ isDefault }) => (isDefault ? 'default' : 'workspace'),
    },
    empty: '',
  })
}

function readSettings(limits: Record<QuotaKind, string | undefined>): QuotaSettings {
  const settings: QuotaSettings = {}
  for (const kind of quotaKinds) {
    const text = limits[kind]
    if (text !== undefined) settings[kind] = readSetting(kind, text)
  }
  return settings
}

function readSetting(kind: QuotaKind, text: string): QuotaSetting {
  if (text === 'default' || text === 'none') return text
  try {
    return readQuantity(text)
  } catch (error) {
    throw new UsageError(`--${kind} ${(error as Error).message}, or \`none\` or \`default\`.`)
  }
}
