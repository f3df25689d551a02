// The secret that signs sessions and encrypts second factors. It must not lie in the database, whose copies go to more
// places than the server does.
import { randomBytes } from 'node:crypto'
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type Config, ConfigError } from './config.ts'
import { StartupError } from './startup-error.ts'

/** Said before anything is waited for. */
export function requireSecret({ secret, database }: Config): void {
  if (secret === undefined && database.engine === 'postgres')
    throw new ConfigError(
      'ADIT_SECRET must be set with PostgreSQL, to the same value on every node. ' +
        'Make one with: openssl rand -base64 32',
    )
}

/** As configured; or, with SQLite, from a file beside the database, which is made the first time. */
export function sessionSecret(config: Config): string {
  requireSecret(config)
  if (config.secret !== undefined) return config.secret
  const { path: database } = config.database as { path: string }
  const path = `${database}.secret`
  try {
    return readOrMake(path)
  } catch (error) {
    const reason = (error as Error).message
    throw new StartupError(
      'secret',
      `The secret ${path} cannot be used: ${reason}. Or set ADIT_SECRET.`,
      error,
    )
  }
}

function readOrMake(path: string): string {
  if (!existsSync(path)) make(path)
  const text = readFileSync(path, 'utf8').trim()
  if (text.length < 32) throw new Error('it has fewer than 32 characters')
  return text
}

/** Whole or not at all: a process killed half-way must not leave an empty secret, nor two that start at once make two. */
function make(path: string): void {
  const draft = `${path}.${process.pid}`
  try {
    writeFileSync(draft, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600, flush: true })
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(draft, { force: true })
  }
}
