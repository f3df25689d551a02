// Exports the audit log of all workspaces for the operator, entry by entry. A cursor is the export position
// of an entry; an export after it returns every later entry once.
import {
  assignExportPositions,
  deleteEntriesBefore,
  type ExportState,
  hasEntriesAfter,
  listExported,
  lockExport,
  setExport,
} from '../../store/audit/export.ts'
import type { Tx } from '../../store/engine/store.ts'
import type { Actor, Services } from '../context.ts'
import { Fault } from '../fault.ts'
import { SLICE_ROWS } from '../pagination.ts'
import { toIso } from '../timestamps.ts'
import { describeEntry, writeAudit } from './entries.ts'

/** Export positions start at the current time in microseconds. */
const MICROSECONDS_PER_MS = 1_000

/** Microseconds since 1970, from 2001 to 2255. */
const CURSOR = /^[1-8]\d{15}$/

/** Undefined if the text cannot be a cursor: not a number, or too small, such as a number of days. */
export const parseCursor = (text: string): number | undefined =>
  CURSOR.test(text) ? Number(text) : undefined

/**
 * The position after which the next one is assigned. It is not before the current time, so that after a
 * restore from a backup no position is assigned twice, and cursors stay valid.
 */
const baseExportPosition = ({ clock }: Services, { exportPosition }: ExportState) =>
  Math.max(exportPosition, clock() * MICROSECONDS_PER_MS)

interface AuditExportInput {
  /** Undefined to start with the oldest entry. */
  since: number | undefined
  /** Whether to continue although entries after the cursor were deleted. */
  skipDeleted: boolean
}

export type ExportedEntry = Awaited<ReturnType<typeof listSlice>>[number]

/** Yields slices of entries, and writes an `audit.exported` entry unless all entries would be such ones. */
export async function* exportAllAudit(
  services: Services,
  actor: Actor,
  input: AuditExportInput,
): AsyncGenerator<ExportedEntry[]> {
  await beginExport(services, actor, input)
  let after = input.since ?? 0
  let afterId = ''
  for (;;) {
    const { through, assigned } = await services.store.transaction((db) => assignNext(db, services, afterId))
    for (;;) {
      const entries = await listSlice(services, after, through)
      if (entries.length > 0) yield entries
      after = Number(entries.at(-1)?.cursor ?? after)
      if (entries.length < SLICE_ROWS) break
    }
    const isLast = assigned.length < SLICE_ROWS
    // Entries with earlier ids may have been committed meanwhile.
    if (isLast && afterId === '') return
    afterId = isLast ? '' : (assigned.at(-1) as string)
  }
}

const beginExport = (services: Services, actor: Actor, { since, skipDeleted }: AuditExportInput) =>
  services.store.transaction(async (db) => {
    const state = await lockExport(db)
    if (since !== undefined && since > baseExportPosition(services, state)) throw aheadFault(since)
    if (since !== undefined && since < state.deletedExportPosition && !skipDeleted) throw deletedFault(since)
    if (!(await hasEntriesAfter(db, since ?? 0, 'audit.exported'))) return
    await writeAudit(db, services, {
      workspaceId: null,
      actor,
      action: 'audit.exported',
      target: { id: 'audit', name: 'audit log of all workspaces' },
      changes: since === undefined ? {} : { since: [null, String(since)] },
    })
  })

async function assignNext(db: Tx, services: Services, afterId: string) {
  const state = await lockExport(db)
  const position = baseExportPosition(services, state)
  const assigned = await assignExportPositions(db, { position, afterId, size: SLICE_ROWS })
  const through = assigned.length > 0 ? position + assigned.length : state.exportPosition
  if (assigned.length > 0) await setExport(db, { ...state, exportPosition: through })
  return { through, assigned }
}

async function listSlice({ store }: Services, after: number, through: number) {
  const rows = await listExported(store.db, { after, through }, SLICE_ROWS)
  return rows.map((row) => ({
    cursor: String(row.position),
    workspace: row.workspace_id === null ? null : { id: row.workspace_id, slug: row.slug },
    ...describeEntry(row),
  }))
}

/**
 * For retention. An entry that was never exported counts as having the next export position, so that an
 * export after any earlier cursor reports that it is missing.
 */
export async function deleteAuditBefore(
  db: Tx,
  services: Services,
  id: string,
  size: number,
): Promise<number> {
  const state = await lockExport(db)
  const positions = await deleteEntriesBefore(db, id, size)
  const exportPosition = positions.includes(null)
    ? baseExportPosition(services, state) + 1
    : state.exportPosition
  const deletedExportPosition = positions.reduce<number>(
    (last, deleted) => Math.max(last, deleted ?? exportPosition),
    state.deletedExportPosition,
  )
  if (deletedExportPosition > state.deletedExportPosition)
    await setExport(db, { exportPosition, deletedExportPosition })
  return positions.length
}

const aheadFault = (since: number) =>
  new Fault('invalid_request', {
    message:
      `The cursor ${since} is ahead of this audit log. It belongs to another deployment, or the clock of ` +
      'this machine is behind.',
  })

const deletedFault = (since: number) =>
  new Fault('conflict', {
    message:
      `Entries after the cursor ${since} (of ${toIso(Math.floor(since / MICROSECONDS_PER_MS))}) were deleted ` +
      'by retention (ADIT_AUDIT_RETENTION_DAYS) before they were exported. Continue with the entries that are ' +
      'left with --skip-deleted.',
  })
