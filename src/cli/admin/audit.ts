import { printableJson } from '../../contract/text.ts'
import { type ExportedEntry, exportAllAudit, parseCursor } from '../../domain/audit-export-all.ts'
import { UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { openCursorFile } from './cursor-file.ts'
import { openOutputFile } from './output-file.ts'
import { withServices } from './with-services.ts'

interface ExportInput {
  since: string | undefined
  output: string | undefined
  'cursor-file': string | undefined
  'skip-deleted': boolean
}

export async function exportLog(input: ExportInput, io: Io): Promise<void> {
  for (const file of ['cursor-file', 'output'] as const)
    if (input.since !== undefined && input[file] !== undefined)
      throw new UsageError(`Use either --since or --${file}, which has a cursor of its own.`)
  const cursorFile = input['cursor-file'] === undefined ? undefined : openCursorFile(input['cursor-file'])
  const output = input.output === undefined ? undefined : openOutputFile(input.output)
  // What the output ends with is what was exported, also if the process was killed before the cursor was
  // stored.
  const since = output?.lastCursor ?? cursorFile?.cursor ?? input.since
  let count = 0
  let cursor = since
  try {
    await withServices(async (services, actor) => {
      const given = {
        since: since === undefined ? undefined : parseCursor(since),
        skipDeleted: input['skip-deleted'],
      }
      for await (const entries of exportAllAudit(services, actor, given)) {
        const text = entries.map(toLine).join('')
        if (output) output.append(text)
        else await io.write(text)
        count += entries.length
        cursor = entries.at(-1)?.cursor
        if (cursor !== undefined) cursorFile?.store(cursor)
      }
    })
  } finally {
    output?.close()
  }
  io.info(
    `Exported ${count} ${count === 1 ? 'entry' : 'entries'}.` +
      (cursor === undefined ? '' : ` Continue with --since ${cursor}.`),
  )
}

const toLine = (entry: ExportedEntry) => `${printableJson(entry)}\n`
