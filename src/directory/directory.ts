// The one door at which secrets are checked: who holds which. Answered from memory while the feed vouches for it, and by
// the database otherwise. Whatever is remembered here, the feed tells of its changes.
import { hashSecret, isSecret } from '../credentials/secret.ts'
import { findEdgeByHash } from '../store/edges.ts'
import { findKeyByHash } from '../store/keys.ts'
import type { Db, Store } from '../store/store.ts'
import { findWorkspaceIds, getWorkspace, type WorkspaceRow } from '../store/workspaces.ts'
import type { ChangeFollower } from './change-follower.ts'
import type { LastUsedTracker } from './last-used.ts'
import { createLruCache, type LruCache } from './lru-cache.ts'

export interface InvalidCredential {
  valid: false
  reason: 'malformed' | 'unknown' | 'revoked'
}

export interface ValidKey {
  valid: true
  keyId: string
  workspaceId: string
}

export interface ValidEdge {
  valid: true
  edgeId: string
}

/** What memory knows is given at once: a promise would only be waited for. A refused secret is an answer, no exception. */
export interface Directory {
  /** Whether the secret is a good key, and whose. A good one counts as used. */
  verifyKey(secret: string): MaybePromise<ValidKey | InvalidCredential>
  verifyEdge(secret: string): MaybePromise<ValidEdge | InvalidCredential>
  getWorkspace(id: string): MaybePromise<WorkspaceRow>
  /** Of those that exist. A slug is never given to another workspace, so what was found once stays true. */
  findWorkspaceIds(slugs: Iterable<string>): Promise<Map<string, string>>
  /** A good key that memory knows; undefined says nothing. It counts as used. */
  cachedKey(secret: string): ValidKey | undefined
  cachedEdge(secret: string): ValidEdge | undefined
  cachedWorkspace(id: string): WorkspaceRow | undefined
  /** Until when what `getWorkspace` says from now on stays true; undefined where memory does not know it. */
  watchWorkspace(id: string): (() => boolean) | undefined
}

export type MaybePromise<T> = T | Promise<T>

export const thenMaybe = <T, R>(
  value: MaybePromise<T>,
  use: (value: T) => MaybePromise<R>,
): MaybePromise<R> => (value instanceof Promise ? value.then(use) : use(value))

const MALFORMED: InvalidCredential = { valid: false, reason: 'malformed' }
const UNKNOWN: InvalidCredential = { valid: false, reason: 'unknown' }
const REVOKED: InvalidCredential = { valid: false, reason: 'revoked' }

export interface DirectoryOptions {
  store: Store
  feed: ChangeFollower
  uses: LastUsedTracker
  /** How many good keys are remembered at the most; of everything else a tenth of it each. */
  keysMax: number
}

export function createDirectory({ store, feed, uses, keysMax }: DirectoryOptions): Directory {
  const othersMax = Math.ceil(keysMax / 10)
  const keys = createLruCache<ValidKey>(keysMax)
  const edges = createLruCache<ValidEdge>(othersMax)
  const workspaces = createLruCache<WorkspaceRow>(othersMax)
  const workspaceIds = createLruCache<string>(othersMax)
  // Apart from the good ones, so that no flood of invented secrets can drive those out.
  const refused = createLruCache<InvalidCredential>(othersMax)

  feed.subscribe({
    onChange({ kind, subject_id: id, hash }) {
      if (kind === 'workspace') return workspaces.delete(id)
      keys.delete(hash)
      edges.delete(hash)
      refused.set(hash, REVOKED)
    },
    onLost() {
      for (const memory of [keys, edges, workspaces, workspaceIds, refused]) memory.clear()
    },
  })

  /**
   * An answer of the database is remembered only if nothing was heard while it was on its way: it may have been given
   * before a change and arrive after it, and would bring back to life what was revoked.
   */
  async function ask<V>(read: (db: Db) => Promise<V>, remember: (found: V) => void): Promise<V> {
    const before = feed.place()
    const found = await read(store.db)
    if (feed.place() === before) remember(found)
    return found
  }

  const recall = <V>(memory: LruCache<V>, name: string): V | undefined =>
    feed.isTrusted() ? memory.get(name) : undefined

  function verify<G extends { valid: true }>(
    hash: string,
    memory: LruCache<G>,
    read: (db: Db) => Promise<G | InvalidCredential>,
  ): MaybePromise<G | InvalidCredential> {
    const known = recall<G | InvalidCredential>(memory, hash) ?? recall(refused, hash)
    if (known) return known
    return ask(read, (verdict) => {
      if (verdict.valid) memory.set(hash, verdict)
      else refused.set(hash, verdict)
    })
  }

  function marked<V extends ValidKey | InvalidCredential | undefined>(verdict: V): V {
    if (verdict?.valid) uses.record(verdict.keyId)
    return verdict
  }

  return {
    verifyKey(secret) {
      if (!isSecret('key', secret)) return MALFORMED
      const hash = hashSecret(secret)
      const verdict = verify<ValidKey>(hash, keys, async (db) =>
        judge(await findKeyByHash(db, hash), (row) => ({
          valid: true,
          keyId: row.id,
          // The text that is there already, where it is: many keys share a workspace.
          workspaceId: workspaces.get(row.workspace_id)?.id ?? row.workspace_id,
        })),
      )
      return thenMaybe(verdict, marked)
    },
    verifyEdge(secret) {
      if (!isSecret('edge', secret)) return MALFORMED
      const hash = hashSecret(secret)
      return verify(hash, edges, async (db) =>
        judge(await findEdgeByHash(db, hash), (row) => ({ valid: true, edgeId: row.id })),
      )
    },
    getWorkspace: (id) =>
      recall(workspaces, id) ??
      ask(
        (db) => getWorkspace(db, id),
        (row) => workspaces.set(id, row),
      ),
    async findWorkspaceIds(slugs) {
      const found = new Map<string, string>()
      const missing: string[] = []
      for (const slug of slugs) {
        const id = recall(workspaceIds, slug)
        if (id === undefined) missing.push(slug)
        else found.set(slug, id)
      }
      if (missing.length === 0) return found
      const rows = await ask(
        (db) => findWorkspaceIds(db, missing),
        (rows) => {
          for (const { slug, id } of rows) workspaceIds.set(slug, id)
        },
      )
      for (const { slug, id } of rows) found.set(slug, id)
      return found
    },
    // Its form was looked at before it was remembered.
    cachedKey: (secret) => marked(recall(keys, hashSecret(secret))),
    cachedEdge: (secret) => recall(edges, hashSecret(secret)),
    cachedWorkspace: (id) => recall(workspaces, id),
    watchWorkspace(id) {
      const row = recall(workspaces, id)
      // Another row, or none, is put in its place when it changes.
      return row && (() => recall(workspaces, id) === row)
    },
  }
}

function judge<R extends { revoked_at: number | null }, G>(
  row: R | undefined,
  describe: (row: R) => G,
): G | InvalidCredential {
  if (!row) return UNKNOWN
  return row.revoked_at === null ? describe(row) : REVOKED
}
