import { readConfig, type ServerLimits } from '../../../server/config/server.ts'
import { recordDatabaseAction } from '../../../server/domain/audit/operator-actions.ts'
import { previewNow, type RunNowResult, runNow } from '../../../server/domain/maintenance/job.ts'
import { retentionTables } from '../../../server/domain/maintenance/retention.ts'
import { abortOnSignal } from '../../abort-on-signal.ts'
import { CommandError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { withServices } from '../with-services.ts'

export async function retention({ 'dry-run': dryRun }: { 'dry-run': boolean }, io: Io): Promise<void> {
  const { limits } = readConfig()
  if (!dryRun) return deleteNow(limits, io)
  const previews = await withServices(previewNow)
  await io.list([previews], {
    columns: {
      TABLE: ({ table }) => table,
      ROWS: ({ rows }) => String(rows),
      OLDEST: ({ oldest }) => (oldest === null ? '' : io.time(oldest)),
    },
    empty: 'No tables.',
  })
  if (limits.auditRetentionDays === undefined)
    io.info('audit_log is kept: ADIT_AUDIT_RETENTION_DAYS is not set.')
}

async function deleteNow(limits: ServerLimits, io: Io): Promise<void> {
  const deleted = Object.fromEntries(retentionTables(limits).map((table) => [table, 0]))
  const { signal, release } = abortOnSignal()
  let result: RunNowResult
  try {
    result = await withServices((services, actor) =>
      runNow(services, {
        signal,
        onStart: () => recordDatabaseAction(services, actor, 'database.cleaned-up'),
        onDeleted(table, rows) {
          deleted[table] = (deleted[table] ?? 0) + rows
          io.progress(`${table}: ${deleted[table]} rows deleted`)
        },
        onWait: (ms) => io.progress(`waiting ${ms / 1000} s for reports in progress`),
      }),
    )
  } finally {
    io.progress('')
    release()
  }
  if (result.outcome === 'busy')
    throw new CommandError(
      'busy',
      `${result.owner}, a server or another command, is deleting now. Retry later.`,
    )
  const rows = Object.entries(deleted).map(([table, rows]) => ({ table, rows }))
  await io.list([rows], {
    columns: { TABLE: ({ table }) => table, DELETED: ({ rows }) => String(rows) },
    empty: 'No tables.',
  })
  if (result.outcome === 'completed') return
  if (signal.aborted) throw new CommandError('canceled', 'Canceled. The rows listed above are deleted.')
  throw new CommandError('stopped', 'Another node has taken over the run. The rows listed above are deleted.')
}
