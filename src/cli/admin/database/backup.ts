import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { readConfig } from '../../../server/config/server.ts'
import { integer } from '../../../server/config/values.ts'
import { createIds } from '../../../server/domain/ids.ts'
import {
  BackupError,
  backUp,
  backUpToFolder,
  verifyBackup,
} from '../../../server/domain/maintenance/backup.ts'
import { operatorActor } from '../../../server/operator.ts'
import { abortOnSignal } from '../../abort-on-signal.ts'
import { CommandError, UsageError } from '../../errors.ts'
import type { Io } from '../../io.ts'

const KEEP_MAX = 10_000

export async function backup(
  { path, keep }: { path: string; keep: string | undefined },
  io: Io,
): Promise<void> {
  const { database, secret } = readConfig()
  const count = keep === undefined ? undefined : readKeep(keep)
  const target = resolve(path)
  const { signal, release } = abortOnSignal()
  const options = {
    clock: Date.now,
    ids: createIds(Date.now, randomBytes),
    actor: operatorActor(),
    onFailure: (what: string, { message }: Error) => io.warn(`${what}: ${message.replace(/\.$/, '')}.`),
    signal,
    onProgress: (percent: number) => io.progress(`${percent}% copied`),
    onCheck: () => io.progress('checking the copy'),
  }
  try {
    const result: Awaited<ReturnType<typeof backUp>> & { deleted?: string[] } =
      count === undefined
        ? await backUp(database, target, options)
        : await backUpToFolder(database, { folder: target, keep: count }, options)
    io.progress('')
    const deleted = result.deleted?.length ? ` Deleted ${result.deleted.length} older.` : ''
    io.data(result, `Wrote ${result.file} with everything that was committed by ${result.asOf}.${deleted}`)
  } catch (error) {
    io.progress('')
    throw toCommandError(error, signal)
  } finally {
    release()
  }
  if (secret !== undefined || database.engine !== 'sqlite') return
  const file = `${database.path}.secret`
  if (existsSync(file))
    io.info(
      `Not included: ${file}, which encrypts two-factor and webhook secrets. Keep a copy of it elsewhere.`,
    )
}

function readKeep(text: string): number {
  try {
    return integer(1, KEEP_MAX)(text)
  } catch (error) {
    throw new UsageError(`--keep ${(error as Error).message}.`)
  }
}

function toCommandError(error: unknown, signal: AbortSignal): CommandError {
  if (signal.aborted) return new CommandError('canceled', 'Canceled. The incomplete copy was removed.')
  const { message } = error as Error
  return new CommandError('backup', error instanceof BackupError ? message : `The backup failed: ${message}.`)
}

export async function verify(path: string, io: Io): Promise<void> {
  const file = resolve(path)
  io.progress('reading the file')
  try {
    const { bytes, schema, rows } = verifyBackup(file)
    io.progress('')
    const counts = {
      workspaces: rows.workspaces,
      users: rows.users,
      keys: rows.api_keys,
      edges: rows.edges,
      usageDays: rows.usage_days,
    }
    io.data(
      { file, bytes, schema, ...counts },
      `${file} is good: ${counts.workspaces} workspaces, ${counts.users} users, ${counts.keys} API keys, ` +
        `${counts.edges} edges, ${counts.usageDays} days of usage; schema version ${schema}.`,
    )
  } catch (error) {
    io.progress('')
    const { message } = error as Error
    throw new CommandError(
      'backup',
      error instanceof BackupError ? message : `${file} cannot be read: ${message}.`,
    )
  }
}
