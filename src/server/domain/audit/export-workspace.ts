// The audit log of a workspace as a file, for admins and owners.

import { printableJson } from '../../../contract/text.ts'
import { toCsv } from '../../../lib/csv.ts'
import { reauthorize } from '../actors.ts'
import type { MemberContext } from '../context.ts'
import { readSlices, SLICE_ROWS } from '../pagination.ts'
import { type AuditFilter, describeEntry, filteredEntries, parseFilter, writeAudit } from './entries.ts'

type Format = 'csv' | 'ndjson'
type Entry = ReturnType<typeof describeEntry>

const types: Record<Format, string> = { csv: 'text/csv', ndjson: 'application/x-ndjson' }

type Input = AuditFilter & { format: Format }

/** Newest first, including an entry of the export itself. `authorize` throws if the user lost access. */
export function exportWorkspaceAudit(ctx: MemberContext, input: Input) {
  const { format, ...filter } = input
  return {
    type: types[format],
    name: `adit-audit.${format}`,
    chunks: exportTexts(ctx, input, parseFilter(filter, '/body')),
    authorize: () => ctx.store.transaction((db) => reauthorize(db, ctx, { lockWorkspace: false })),
  }
}

const recordExport = (ctx: MemberContext, input: Input) =>
  ctx.store.transaction(async (db) => {
    await reauthorize(db, ctx)
    const parameters = Object.entries(input).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, [null, value]] as const],
    )
    await writeAudit(db, ctx, {
      workspaceId: ctx.workspaceId,
      actor: ctx.actor,
      action: 'audit.exported',
      target: { id: 'audit', name: 'audit log' },
      changes: Object.fromEntries(parameters),
    })
  })

async function* exportTexts(
  ctx: MemberContext,
  input: Input,
  filter: ReturnType<typeof parseFilter>,
): AsyncGenerator<string> {
  const { format } = input
  await recordExport(ctx, input)
  if (format === 'csv') yield toCsv([columns.map(([name]) => name)])
  const { read, matches } = filteredEntries(ctx, filter)
  const slices = readSlices<Awaited<ReturnType<typeof read>>[number]>((last) =>
    read({ after: last?.id, limit: SLICE_ROWS }),
  )
  for await (const rows of slices) {
    const found = rows.filter(matches)
    if (found.length > 0) yield found.map((row) => toText[format](describeEntry(row))).join('')
  }
}

const columns: [name: string, value: (entry: Entry) => string | number | null][] = [
  ['time', ({ at }) => at],
  ['actor kind', ({ actor }) => actor.kind],
  ['actor', ({ actor }) => actor.name],
  ['actor id', ({ actor }) => actor.id],
  ['action', ({ action }) => action],
  ['target kind', ({ target }) => target.kind],
  ['target', ({ target }) => target.name],
  ['target id', ({ target }) => target.id],
  ['address', ({ address }) => address],
  ['detail', ({ detail }) => detail],
  ['count', ({ count }) => count],
  ['changes', ({ changes }) => (Object.keys(changes).length > 0 ? JSON.stringify(changes) : null)],
  ['id', ({ id }) => id],
]

const toText: Record<Format, (entry: Entry) => string> = {
  csv: (entry) => toCsv([columns.map(([, read]) => read(entry) ?? '')]),
  ndjson: (entry) => `${printableJson(entry)}\n`,
}
