import { printableJson } from '../../contract/text.ts'
import { type ExportedEntry, exportAllAudit, parseCursor } from '../../server/domain/audit/export-all.ts'
import { CommandError, UsageError } from '../errors.ts'
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
    const range = {
      since: since === undefined ? undefined : requireCursor(since, input),
      skipDeleted: input['skip-deleted'],
    }
    await withServices(async (services, actor) => {
      for await (const entries of exportAllAudit(services, actor, range)) {
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

function requireCursor(text: string, { since, output, 'cursor-file': file }: ExportInput): number {
  const cursor = parseCursor(text)
  if (cursor !== undefined) return cursor
  const remedy = 'Use `cursor` of the last exported entry, which has 16 digits.'
  if (since !== undefined) throw new UsageError(`Invalid --since "${text}". ${remedy}`)
  throw new CommandError('cursor_file', `Invalid cursor in ${output ?? file}. ${remedy}`)
}

const toLine = (entry: ExportedEntry) => `${printableJson(entry)}\n`
