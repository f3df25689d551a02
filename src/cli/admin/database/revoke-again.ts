import { realpathSync } from 'node:fs'
import { type Config, readConfig } from '../../../server/config/server.ts'
import { readDatabaseUrl } from '../../../server/config/values.ts'
import { repeatRevocations } from '../../../server/domain/maintenance/revoke-again.ts'
import { openOther } from '../../../server/services.ts'
import { UsageError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { requireFile, withServices } from '../with-services.ts'

export async function revokeAgain(database: string, io: Io): Promise<void> {
  const target = readTarget(database)
  requireFile(target, 'Nothing was changed.')
  const results = await withServices(async (services, actor) => {
    if (isSame(target, readConfig().database))
      throw new UsageError('It is the database of ADIT_DATABASE_URL. Name the one from before the restore.')
    const other = await openOther(target)
    try {
      return await repeatRevocations(services, actor, other, ({ kind, revoked, alreadyRevoked, missing }) =>
        io.progress(`${kind}: ${revoked + alreadyRevoked + missing} compared, ${revoked} revoked`),
      )
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

/** Also reads a path without `sqlite:`. Errors do not show a URL, which may have a password. */
function readTarget(database: string): Config['database'] {
  try {
    return readDatabaseUrl(/^(sqlite|postgres(ql)?):/.test(database) ? database : `sqlite:${database}`)
  } catch (error) {
    throw new UsageError(`The database ${(error as Error).message}.`)
  }
}

const isSame = (a: Config['database'], b: Config['database']) =>
  a.engine === 'sqlite' && b.engine === 'sqlite'
    ? realpathSync(a.path) === realpathSync(b.path)
    : a.engine === 'postgres' && b.engine === 'postgres' && a.url === b.url
