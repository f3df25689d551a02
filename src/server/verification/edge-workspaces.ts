// The workspaces for which an edge has verified an API key. It may report usage of these only; all others
// look to it as if they did not exist. A pair is committed before the edge learns that the key is valid, and
// is never deleted, so that no late report of an honest edge is lost.
import { createLruCache } from '../../lib/lru-cache.ts'
import type { Store } from '../store/engine/store.ts'
import {
  type EdgeWorkspace,
  findEdgeWorkspaces,
  findVerifiedWorkspaces,
  insertEdgeWorkspaces,
} from '../store/tunnels/edge-workspaces.ts'
import type { WorkspaceRow } from '../store/workspaces.ts'
import { createBatchedLookup } from './batched-lookup.ts'
import type { ChangeFollower } from './change-follower.ts'
import { type CredentialVerifier, type MaybePromise, thenMaybe } from './verify.ts'

type Workspace = Pick<WorkspaceRow, 'id' | 'slug'>

export interface EdgeWorkspaces {
  /** Whether this node knows that the pair is committed. */
  isKnown(edgeId: string, workspace: Workspace): boolean
  /** The workspace of a valid key that the edge has presented, after the pair is committed. */
  getVerified(edgeId: string, workspaceId: string): MaybePromise<WorkspaceRow>
  /** Ids by slug, without workspaces for which the edge has verified no key. */
  findIds(edgeId: string, slugs: Iterable<string>): Promise<ReadonlyMap<string, string>>
}

interface EdgeWorkspacesOptions {
  store: Store
  follower: Pick<ChangeFollower, 'subscribe'>
  verifier: Pick<CredentialVerifier, 'getWorkspace'>
  /** Capacity of the cache. */
  pairsMax: number
}

export function createEdgeWorkspaces(options: EdgeWorkspacesOptions): EdgeWorkspaces {
  const { store, follower, verifier, pairsMax } = options
  /** Ids of workspaces, by edge and slug. */
  const known = createLruCache<string>(pairsMax)
  let resets = 0
  follower.subscribe({
    onChange() {},
    // The database may have lost what was committed.
    onReset() {
      resets += 1
      known.clear()
    },
  })

  /** Caches the workspaces that `load` returns, unless the change log was reset meanwhile. */
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

  return {
    isKnown,
    getVerified: (edgeId, workspaceId) =>
      thenMaybe(verifier.getWorkspace(workspaceId), (workspace) => {
        if (isKnown(edgeId, workspace)) return workspace
        const pair = formatPair({ edge_id: edgeId, workspace_id: workspaceId })
        const record = async () => {
          if (!(await find(pair))) await insert(pair)
          return [workspace]
        }
        return loadAndCache(edgeId, record).then(() => workspace)
      }),
    async findIds(edgeId, slugs) {
      const found = new Map<string, string>()
      const missing: string[] = []
      for (const slug of slugs) {
        const id = known.get(cacheKey(edgeId, slug))
        if (id === undefined) missing.push(slug)
        else found.set(slug, id)
      }
      if (missing.length === 0) return found
      const read = () => findVerifiedWorkspaces(store.db, edgeId, missing)
      for (const { slug, id } of await loadAndCache(edgeId, read)) found.set(slug, id)
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
