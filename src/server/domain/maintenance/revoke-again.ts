// Repeats revocations after a restore: a restored database accepts again what was revoked after its backup.
import { findUser } from '../../store/accounts/users.ts'
import type { Store, Tx } from '../../store/engine/store.ts'
import {
  countExisting,
  isSameDatabase,
  listRevoked,
  type RevocableTable,
} from '../../store/maintenance/revocations.ts'
import {
  awaitPropagation,
  type KeyChange,
  type PublishedChange,
  publishChanges,
} from '../../verification/propagation.ts'
import { disable } from '../accounts/users.ts'
import type { Caller, Services } from '../context.ts'
import { Fault } from '../fault.ts'
import { revokeMany } from '../keys/operator.ts'
import { readSlices, SLICE_ROWS } from '../pagination.ts'
import { revokeActive } from '../tunnels/edges.ts'

interface Result {
  count: number
  changes: KeyChange[]
}

type Revoke = (db: Tx, services: Services, actor: Caller, ids: readonly string[]) => Promise<Result>

const revocations: readonly { kind: string; table: RevocableTable; revoke: Revoke }[] = [
  {
    kind: 'key',
    table: 'api_keys',
    async revoke(db, services, actor, ids) {
      const changes = await revokeMany(db, services, actor, ids)
      return { count: changes.length, changes }
    },
  },
  {
    kind: 'edge',
    table: 'edges',
    revoke: (db, services, actor, ids) =>
      revokeEach(ids, async (id) => {
        const change = await revokeActive(db, services, actor, id)
        return change && [change]
      }),
  },
  {
    kind: 'user',
    table: 'users',
    revoke: (db, services, actor, ids) =>
      revokeEach(ids, async (id) => {
        const user = await findUser(db, id)
        return user && disable(db, services, actor, user)
      }),
  },
]

async function revokeEach(
  ids: readonly string[],
  revoke: (id: string) => Promise<KeyChange[] | undefined>,
): Promise<Result> {
  const revoked: KeyChange[][] = []
  for (const id of ids) {
    const changes = await revoke(id)
    if (changes) revoked.push(changes)
  }
  return { count: revoked.length, changes: revoked.flat() }
}

interface Progress {
  kind: string
  revoked: number
  /** Here, they were revoked or had expired before. */
  alreadyRevoked: number
  /** Not in this database, because they were created after the backup. */
  missing: number
}

export class SameDatabase extends Error {
  override name = 'SameDatabase'
}

function failToRead(error: Error): never {
  const message = `The other database cannot be read: ${error.message}. You can run the command again.`
  throw new Fault('unavailable', { message })
}

/**
 * Revokes the keys, edges and users that are revoked in the other database, a batch in each transaction. It
 * can be repeated. Waits for the nodes once, at the end.
 */
export async function repeatRevocations(
  services: Services,
  actor: Caller,
  other: Store,
  onProgress: (progress: Progress) => void,
): Promise<Progress[]> {
  if (await isSameDatabase(services.store.db, other.db)) throw new SameDatabase()
  const results: Progress[] = []
  let last: PublishedChange | undefined
  for (const { kind, table, revoke } of revocations) {
    const progress = { kind, revoked: 0, alreadyRevoked: 0, missing: 0 }
    results.push(progress)
    const slices = readSlices<{ id: string }>((previous) =>
      listRevoked(other.db, table, { after: previous?.id, limit: SLICE_ROWS }).catch(failToRead),
    )
    for await (const rows of slices) {
      const ids = rows.map(({ id }) => id)
      const { existing, count, change } = await services.store.transaction(async (db) => {
        const existing = await countExisting(db, table, ids)
        const { count, changes } = await revoke(db, services, actor, ids)
        return { existing, count, change: await publishChanges(db, services, changes) }
      })
      if (change) last = { ...change, subjectIds: [...(last?.subjectIds ?? []), ...change.subjectIds] }
      progress.revoked += count
      progress.alreadyRevoked += existing - count
      progress.missing += ids.length - existing
      onProgress(progress)
    }
  }
  await awaitPropagation(services, last)
  return results
}
