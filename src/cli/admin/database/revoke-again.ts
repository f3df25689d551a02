import { statSync } from 'node:fs'
import { type Config, readConfig } from '../../../server/config/server.ts'
import { readDatabaseUrl } from '../../../server/config/values.ts'
import { repeatRevocations, SameDatabase } from '../../../server/domain/maintenance/revoke-again.ts'
import { openOther } from '../../../server/services.ts'
import { UsageError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { requireFile, withServices } from '../with-services.ts'

export async function revokeAgain(database: string, io: Io): Promise<void> {
  const target = readTarget(database)
  requireFile(target, 'Nothing was changed.')
  const results = await withServices(async (services, actor) => {
    if (isSameFile(target, readConfig().database)) throw new UsageError(SAME_DATABASE)
    const other = await openOther(target)
    try {
      return await repeatRevocations(services, actor, other, ({ kind, revoked, alreadyRevoked, missing }) =>
        io.progress(`${kind}: ${revoked + alreadyRevoked + missing} compared, ${revoked} revoked`),
      )
    } catch (error) {
      throw error instanceof SameDatabase ? new UsageError(SAME_DATABASE) : error
    } finally {
      await other.close()
      io.progress('')
    }
  })
  await io.list([results], {
    columns: {
      KIND: ({ kind }) => kind,
      REVOKED: ({ revoked }) => String(revoked),
      'ALREADY REVOKED': ({ alreadyRevoked }) => String(alreadyRevoked),
      'NOT HERE': ({ missing }) => String(missing),
    },
    empty: '',
  })
}

const SAME_DATABASE = 'It is the database of ADIT_DATABASE_URL. Name the one from before the restore.'

/** Also reads a path without `sqlite:`. Errors do not show a URL, which may have a password. */
function readTarget(database: string): Config['database'] {
  try {
    return readDatabaseUrl(/^(sqlite|postgres(ql)?):|:\/\//.test(database) ? database : `sqlite:${database}`)
  } catch (error) {
    throw new UsageError(`The database ${(error as Error).message}.`)
  }
}

/** Also by a link: SQLite must never have one file open under two names. */
function isSameFile(a: Config['database'], b: Config['database']): boolean {
  if (a.engine !== 'sqlite' || b.engine !== 'sqlite') return false
  const [first, second] = [statSync(a.path, { bigint: true }), statSync(b.path, { bigint: true })]
  return first.dev === second.dev && first.ino === second.ino
}
