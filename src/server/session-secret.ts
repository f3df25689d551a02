// The secret that signs sessions and encrypts two-factor and webhook secrets. It is not in the database, so
// that a backup of the database does not contain it.
import { randomBytes } from 'node:crypto'
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { StartupError } from '../lib/startup-error.ts'
import type { Config } from './config/server.ts'
import { ConfigError } from './config/setting.ts'

export const SECRET_CHARS_MIN = 32

export const secretPath = (database: string): string => `${database}.secret`

/** Checked before the server waits for its database. */
export function requireSecret({ secret, database }: Pick<Config, 'secret' | 'database'>): void {
  if (secret === undefined && database.engine === 'postgres')
    throw new ConfigError(
      'ADIT_SECRET must be set with PostgreSQL, to the same value on every node. ' +
        'Generate one with: openssl rand -base64 32',
    )
}

/** ADIT_SECRET; or, with SQLite, the file next to the database, which is created at the first start. */
export function sessionSecret(config: Config): string {
  requireSecret(config)
  if (config.secret !== undefined) return config.secret
  const { path: database } = config.database as { path: string }
  const path = secretPath(database)
  try {
    return readOrCreate(path)
  } catch (error) {
    const reason = (error as Error).message
    throw new StartupError(
      'secret',
      `Cannot use the session secret in ${path}: ${reason}. Fix the file, or set ADIT_SECRET.`,
      error,
    )
  }
}

function readOrCreate(path: string): string {
  if (!existsSync(path)) create(path)
  const text = readFileSync(path, 'utf8').trim()
  if (text.length < SECRET_CHARS_MIN) throw new Error(`it has fewer than ${SECRET_CHARS_MIN} characters`)
  return text
}

/** Atomic: a process that is killed leaves no empty secret, and of two that start together one wins. */
function create(path: string): void {
  // Random, because two containers may start processes with the same id.
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  try {
    writeFileSync(draft, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600, flush: true })
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(draft, { force: true })
  }
}
