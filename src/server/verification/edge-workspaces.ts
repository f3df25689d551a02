// The workspaces of an edge: those of its group. It may verify keys and report usage of these only; all
// others look to it as if they did not exist. A pair of edge and workspace is committed before the edge
// learns that a key is valid, and before its usage is accepted, so that what it has reported can be found.
import { createLruCache } from '../../lib/collections/lru-cache.ts'
import type { Store } from '../store/engine/store.ts'
import {
  type EdgeWorkspace,
  findEdgeWorkspaces,
  findGroupWorkspaces,
  insertEdgeWorkspaces,
} from '../store/tunnels/edge-workspaces.ts'
import type { WorkspaceRow } from '../store/workspaces.ts'
import { createBatchedLookup } from './batched-lookup.ts'
import type { ChangeFollower } from './change-follower.ts'
import {
  type CredentialVerifier,
  type InvalidCredential,
  type MaybePromise,
  thenMaybe,
  type ValidKey,
} from './verify.ts'

type Workspace = Pick<WorkspaceRow, 'id' | 'slug'>

export interface EdgeRef {
  id: string
  /** The name of its group. */
  group: string
}

const UNKNOWN_KEY: InvalidCredential = { valid: false, reason: 'unknown' }

export type VerifiedKey = ValidKey & { workspace: WorkspaceRow }

export interface EdgeWorkspaces {
  /** Whether this node knows that the workspace is in the edge's group, and the pair is committed. */
  isKnown(edgeId: string, workspace: Workspace): boolean
  /** Verifies a key that the edge presents. A valid key of a workspace of another group is unknown. */
  verifyKey(secret: string, edge: EdgeRef): MaybePromise<VerifiedKey | InvalidCredential>
  /** Ids by slug, without workspaces of other groups. */
  findIds(edge: EdgeRef, slugs: Iterable<string>): Promise<ReadonlyMap<string, string>>
}

interface EdgeWorkspacesOptions {
  store: Store
  follower: Pick<ChangeFollower, 'subscribe'>
  verifier: Pick<CredentialVerifier, 'getWorkspace' | 'verifyKey'>
  /** Capacity of the cache. */
  pairsMax: number
}

export function createEdgeWorkspaces(options: EdgeWorkspacesOptions): EdgeWorkspaces {
  const { store, follower, verifier, pairsMax } = options
  /** Ids of workspaces, by edge and slug. */
  const known = createLruCache<string>(pairsMax)
  let resets = 0
  const reset = () => {
    resets += 1
    known.clear()
  }
  follower.subscribe({
    onChange({ kind }) {
      if (kind === 'workspace-group') reset()
    },
    // The database may have lost what was committed.
    onReset: reset,
  })

  /** Caches the workspaces that `load` returns, unless the cache was cleared meanwhile. */
  async function loadAndCache<W extends Workspace>(edgeId: string, load: () => Promise<W[]>): Promise<W[]> {
    const before = resets
    const workspaces = await load()
    if (resets === before) for (const { slug, id } of workspaces) known.set(cacheKey(edgeId, slug), id)
    return workspaces
  }

  /** Separate from `insert`, so that existing pairs are found even while commits hang. */
  const find = createBatchedLookup(async (keys) => {
    const rows = await findEdgeWorkspaces(store.db, keys.map(parsePair))
    return new Map(rows.map((row) => [formatPair(row), true]))
  })
  const insert = createBatchedLookup<true>(async (keys) => {
    await store.transaction((tx) => insertEdgeWorkspaces(tx, keys.map(parsePair)))
    return new Map()
  })

  const isKnown = (edgeId: string, { slug }: Workspace) => known.get(cacheKey(edgeId, slug)) !== undefined

  async function record(edgeId: string, { id }: Workspace): Promise<void> {
    const pair = formatPair({ edge_id: edgeId, workspace_id: id })
    if (!(await find(pair))) await insert(pair)
  }

  return {
    isKnown,
    verifyKey: (secret, edge) =>
      thenMaybe(verifier.verifyKey(secret), (key) => {
        if (!key.valid) return key
        return thenMaybe(verifier.getWorkspace(key.workspaceId), (workspace) => {
          if (workspace.edge_group !== edge.group) return UNKNOWN_KEY
          const verified = { ...key, workspace }
          if (isKnown(edge.id, workspace)) return verified
          return loadAndCache(edge.id, async () => {
            await record(edge.id, workspace)
            return [workspace]
          }).then(() => verified)
        })
      }),
    async findIds({ id: edgeId, group }, slugs) {
      const found = new Map<string, string>()
      const missing: string[] = []
      for (const slug of slugs) {
        const id = known.get(cacheKey(edgeId, slug))
        if (id === undefined) missing.push(slug)
        else found.set(slug, id)
      }
      if (missing.length === 0) return found
      const workspaces = await loadAndCache(edgeId, async () => {
        const read = await findGroupWorkspaces(store.db, group, missing)
        await Promise.all(read.map((workspace) => record(edgeId, workspace)))
        return read
      })
      for (const { slug, id } of workspaces) found.set(slug, id)
      return found
    },
  }
}

// Neither ids nor slugs have spaces.
const cacheKey = (edgeId: string, slug: string) => `${edgeId} ${slug}`
const formatPair = ({ edge_id, workspace_id }: EdgeWorkspace) => `${edge_id} ${workspace_id}`

function parsePair(pair: string): EdgeWorkspace {
  const [edge_id = '', workspace_id = ''] = pair.split(' ')
  return { edge_id, workspace_id }
}
